package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// errExpired is why an item is a dead letter whose time was over.
var errExpired = errors.New("expired")

// WithExpiry keeps the item from being handed out once d has passed since its put, by the ensemble's clock, as a consumer estimates it:
// also if it was handed out before, and has come back. A consumer that meets it then makes it a dead letter with the reason
// "expired", or drops it (WithDropExpired). That is no attempt. Nobody looks for such items: until its turn comes it lies in the
// queue and takes room in a bounded one. A delivery that is open goes on. A dead letter that is requeued expires no more.
func WithExpiry(d time.Duration) PutOption {
	return func(p *putting) error {
		if d < time.Second || d > maxDelay {
			return fmt.Errorf("%w: WithExpiry: %v is not between 1s and %v", ErrOption, d, maxDelay)
		}
		p.header.TTL = d.Milliseconds()
		return nil
	}
}

// WithDropExpired makes this Queue remove items whose time is over (WithExpiry), instead of making them dead letters. Give it to all
// consumers of a queue.
func WithDropExpired() Option {
	return func(q *engine) error {
		q.dropExpired = true
		return nil
	}
}

// WithDeadExpiry removes dead letters that are older than d, by the ensemble's clock, some time after. One of the consumers does it, the
// first in the queue's line, if it was made with this option: give it to all. Default: dead letters stay.
func WithDeadExpiry(d time.Duration) Option {
	return func(q *engine) error {
		if d < time.Second {
			return fmt.Errorf("%w: WithDeadExpiry: %v, at least 1s", ErrOption, d)
		}
		q.deadExpiry = d
		return nil
	}
}

// expired reports whether nobody is to be handed the item any more.
func (h itemHeader) expired(now time.Time) bool {
	return h.TTL > 0 && !now.Before(h.enqueued().Add(time.Duration(h.TTL)*time.Millisecond))
}

// expire takes an item whose time is over out of the queue. That it was claimed is no attempt.
func (d *delivery) expire() {
	if d.markSettled(ErrSettled) != nil {
		return
	}
	d.attempt--
	if q := d.session.q; q.dropExpired {
		d.writeSettlement(d.newRequest(append(d.removeOps(), q.leaveOps()...)), nothing, func(error) {})
		return
	}
	d.moveToDeadLetters(errExpired, func(error) {})
}

// expireDead removes dead letters when their time is over, until ctx ends.
func (sh *consumerSession) expireDead(ctx context.Context) error {
	if _, err := sh.q.writer.do(ctx, &writeRequest{session: sh.s}); err != nil { // hears the ensemble's time
		return err
	}
	for {
		wait, err := sh.removeExpired(ctx)
		if err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// How many dead letters a round removes, how many of them together, and how long it is until the next if there are more.
const (
	mostExpired     = 500
	expiredTogether = 100
	nextExpired     = time.Second
)

// removeExpired removes the dead letters whose time is over, up to a number, and tells how long to wait. They lie in the order in which they
// were buried: the first whose time is not over ends the round.
func (sh *consumerSession) removeExpired(ctx context.Context) (time.Duration, error) {
	q, removed := sh.q, 0
	segments, err := q.dead.segments(ctx, sh.s)
	if err != nil {
		return 0, err
	}
	for i, seg := range segments {
		items, err := q.dead.items(ctx, sh.s, seg)
		if err != nil {
			return 0, err
		}
		for some := range slices.Chunk(items, expiredTogether) {
			wait, err := sh.removeDead(ctx, seg, some)
			if err != nil || wait > 0 {
				return wait, err
			}
			if removed += len(some); removed >= mostExpired {
				return nextExpired, nil
			}
		}
		if i < len(segments)-1 {
			_ = q.dead.removeSegment(ctx, sh.s, seg) // refused if it is not to be
		}
	}
	return q.deadExpiry, nil // what is buried from now on lasts so long
}

// removeDead removes those of some dead letters whose time is over, and tells how long the next has left: 0 if that is none of these.
func (sh *consumerSession) removeDead(ctx context.Context, seg int64, items []int64) (wait time.Duration, err error) {
	var ops []framework.Op
	for _, k := range items {
		node := sh.q.dead.item(seg, k)
		st, err := sh.s.Exists(ctx, node)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if wait = st.Ctime.Add(sh.q.deadExpiry).Sub(sh.q.clock.now()); wait > 0 {
			break
		}
		ops = append(ops, framework.DeleteOp(node, st.Version))
	}
	if len(ops) == 0 {
		return max(0, wait), nil
	}
	_, err = sh.q.writer.do(ctx, &writeRequest{session: sh.s, ops: ops})
	var refused *framework.TxError
	if errors.As(err, &refused) && errors.Is(err, framework.ErrNoNode) { // one was requeued or removed meanwhile
		return nextExpired, nil
	}
	return max(0, wait), err
}
