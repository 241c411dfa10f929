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

// enterRetryPause is how long a worker that the barrier has refused waits before it tries again.
const enterRetryPause = 20 * time.Millisecond

// work goes through the phases. A late worker skips those that are over.
func (r *round) work(ctx context.Context) error {
	for p := range phases {
		over := r.over(r.number, p)
		err := runUntilOpen(ctx, over, func(during context.Context) error {
			if err := r.workUntilDone(during, p); err != nil {
				return err
			}
			return r.meetAtBarrier(ctx, during, p, over)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// workUntilDone takes items until every item of the phase has its result. It finishes the items
// that it has taken.
func (r *round) workUntilDone(during context.Context, phase int) error {
	return runUntilOpen(during, r.done(r.number, phase), func(taking context.Context) error {
		return r.items.Work(taking, 1, r.handle)
	})
}

// handle works on an item and acknowledges it once its result is stored. After a failure, or when
// its delivery ends, the queue delivers the item again.
func (r *round) handle(ctx context.Context, d *queue.Delivery[item]) error {
	i := d.Value
	r.emit(event{Kind: delivered, Round: i.Round, Phase: i.Phase, Attempt: d.Attempt})
	kind, err := r.store(ctx, d.Value)
	if err == nil {
		r.emit(event{Kind: kind, Round: i.Round, Phase: i.Phase})
	}
	return err
}

// store computes an item's result and stores it, unless it exists. It counts the item in the phase
// in either case, because the worker that stored the result may have died before.
func (r *round) store(ctx context.Context, i item) (kind, error) {
	select {
	case <-time.After(r.Effort): // simulated work
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	kind := worked
	result := strconv.FormatInt(phases[i.Phase].apply(i.Value), 10)
	err := r.client.Create(ctx, i.result(), []byte(result), framework.Persistent)
	switch {
	case errors.Is(err, framework.ErrNodeExists):
		kind = repeated
	case errors.Is(err, framework.ErrNoNode):
		return repeated, nil // its round was removed
	case err != nil:
		return "", err
	}
	return kind, r.done(i.Round, i.Phase).CountDown(ctx, strconv.Itoa(i.Index))
}

// meetAtBarrier waits at the barrier for all other workers. Each worker inside opens the phase's
// latch, so that the latch opens even if some of them die now. Workers outside continue when it
// opens.
func (r *round) meetAtBarrier(ctx, during context.Context, phase int, over *barrier.Latch) error {
	meeting, err := r.enterBarrier(during)
	if err != nil {
		return err
	}
	r.emit(event{Kind: met, Round: r.number, Phase: phase})
	err = over.CountDown(ctx, "met")
	// The next phase's barrier waits until all have left. Leave gives up the place also if this
	// round was reported meanwhile.
	left := meeting.Leave(ctx)
	if errors.Is(left, framework.ErrSessionLost) {
		left = nil // the others consider this worker dead, and have left
	}
	return errors.Join(err, left)
}

// enterBarrier enters the barrier. It tries again while the barrier still counts a dead worker, and
// after this session was lost.
func (r *round) enterBarrier(ctx context.Context) (*barrier.Round, error) {
	for {
		meeting, err := r.meeting.Enter(ctx)
		if !errors.Is(err, barrier.ErrTooMany) && !errors.Is(err, framework.ErrSessionLost) {
			return meeting, err
		}
		select {
		case <-time.After(enterRetryPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
