package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// again is how soon a worker that found no room at the barrier asks again.
const again = 20 * time.Millisecond

// work goes through the phases. A worker that comes late skips those that are over.
func (w *worker) work(ctx context.Context) error {
	for p := range phases {
		over := w.over(p)
		err := untilOpen(ctx, over, func(during context.Context) error {
			if err := w.empty(ctx, during, p); err != nil {
				return err
			}
			return w.meet(ctx, during, p, over)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// empty takes items until every item of the phase has its result. What has been taken is finished before.
func (w *worker) empty(ctx, during context.Context, phase int) error {
	return untilOpen(during, w.done(phase), func(taking context.Context) error {
		for {
			d, err := w.items.Take(taking)
			if err != nil {
				return err
			}
			if err := w.handle(ctx, d); err != nil {
				return err
			}
		}
	})
}

// handle works on an item, and acknowledges it once its result is stored. A delivery that has ended is no error: the item
// comes again, to this worker or to another.
func (w *worker) handle(ctx context.Context, d *queue.Delivery[item]) error {
	w.tell(event{Kind: took, Phase: d.Value.Phase, Attempt: d.Attempt})
	kind, err := w.store(ctx, d)
	if err == nil {
		w.tell(event{Kind: kind, Phase: d.Value.Phase})
		err = d.Ack(ctx)
	}
	if err != nil && ctx.Err() == nil && d.Context().Err() != nil {
		return nil
	}
	return err
}

// store computes an item's result and stores it, unless it is there already. The phase counts it once in either case, since
// who has stored it may have died before it counted.
func (w *worker) store(ctx context.Context, d *queue.Delivery[item]) (kind, error) {
	i := d.Value
	select {
	case <-time.After(w.Effort): // the work is hard
	case <-d.Context().Done():
		return "", context.Cause(d.Context())
	case <-ctx.Done():
		return "", ctx.Err()
	}
	kind := worked
	result := strconv.FormatInt(phases[i.Phase].turn(i.Value), 10)
	err := w.client.Create(ctx, i.result(), []byte(result), framework.Persistent)
	if errors.Is(err, framework.ErrNodeExists) {
		kind, err = repeated, nil
	}
	if err != nil {
		return "", err
	}
	return kind, w.done(i.Phase).CountDown(ctx, strconv.Itoa(i.Index))
}

// meet waits at the barrier for all other workers. Whoever is inside says that the phase is over: the same, however
// many say it, and said even if some die now. Those who are not inside go on when they hear of it.
func (w *worker) meet(ctx, during context.Context, phase int, over *barrier.Latch) error {
	round, err := w.enter(during)
	if err != nil {
		return err
	}
	w.tell(event{Kind: met, Phase: phase})
	if err := over.CountDown(ctx, "met"); err != nil {
		return err
	}
	if err := round.Leave(ctx); !errors.Is(err, framework.ErrSessionLost) {
		return err
	}
	return nil // the others have taken this worker for dead, and have left
}

// enter enters the barrier. A dead worker's place may not be free yet, and a lost session's round is over.
func (w *worker) enter(ctx context.Context) (*barrier.Round, error) {
	for {
		round, err := w.meeting.Enter(ctx)
		if !errors.Is(err, barrier.ErrTooMany) && !errors.Is(err, framework.ErrSessionLost) {
			return round, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
