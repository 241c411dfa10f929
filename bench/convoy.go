package main

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// convoyHandoffs is W4.
func convoyHandoffs(s settings) error {
	ctx, n := context.Background(), orDefault(s.c, 1000)
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	q, err := newWaiterQueue(ctx, s, c)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := q.grow(ctx, c, n); err != nil {
		return err
	}
	queueing := time.Since(start)
	settle(s)
	before, start := s.traffic(), time.Now()
	if err := q.releaseAll(ctx, start); err != nil {
		return err
	}
	took := time.Since(start)
	sent := s.traffic().since(before)
	if q.g.entries != n {
		return errViolated
	}
	r := newResult(s, "lockstep", s.params(map[string]any{"c": n}), n, took, q.g.handoffs).requests(sent)
	r.PerHandoff, r.QueueingS = ptr(ms(took)/float64(n)), ptr(queueing.Seconds())
	return r.print()
}

// waiterQueue is a holder and waiters of one client.
type waiterQueue struct {
	m      *locks.Mutex
	holder *locks.Lease
	paced  bool
	g      criticalSection
	former <-chan struct{} // closed when the former release has returned; guarded by the lock
	errs   chan error
	wg     sync.WaitGroup
}

func newWaiterQueue(ctx context.Context, s settings, c *framework.Client) (*waiterQueue, error) {
	q := &waiterQueue{m: locks.NewMutex(c, root+"/w4", s.options()...), paced: s.paced}
	var err error
	q.holder, err = q.m.Lock(ctx)
	return q, err
}

// grow adds n waiters and waits until the servers have their nodes.
func (q *waiterQueue) grow(ctx context.Context, c *framework.Client, n int) error {
	q.errs = make(chan error, n)
	for i := range n {
		q.wg.Go(func() {
			if err := q.pass(ctx, i); err != nil {
				q.errs <- err
			}
		})
	}
	return awaitChildren(q.holder.Context(), c, q.m.Path(), n+1)
}

// releaseAll releases the holder and waits until all waiters have passed.
func (q *waiterQueue) releaseAll(ctx context.Context, now time.Time) error {
	released := make(chan struct{})
	q.former, q.g.owner, q.g.released = released, -1, now
	if err := q.holder.Release(ctx); err != nil {
		return err
	}
	close(released)
	q.wg.Wait()
	close(q.errs)
	return <-q.errs
}

// pass is one waiter's cycle.
func (q *waiterQueue) pass(ctx context.Context, who int) error {
	lease, err := q.m.Lock(ctx)
	if err != nil {
		return err
	}
	if err := q.g.enter(who, fenceOf(lease), true); err != nil {
		return err
	}
	released := make(chan struct{})
	defer close(released)
	former := q.former
	q.former = released
	if q.paced {
		<-former
		q.g.released = time.Now()
	}
	return lease.Release(ctx)
}

// awaitChildren polls until path has n children. ctx is that of the holder's lease: without the
// holder there are never so many.
func awaitChildren(ctx context.Context, c *framework.Client, path string, n int) error {
	for {
		stat, err := c.Exists(ctx, path)
		if err != nil {
			return err
		}
		if int(stat.NumChildren) >= n {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
