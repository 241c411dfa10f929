package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// place is a shift's in the queue's line. It outlasts all that the shift has of the queue: what goes with a session later
// than the place is missed by nobody (docs/adr/0021-a-queue-of-segments-and-tickets.md, rule 3).
type place struct {
	ctx   context.Context
	leave context.CancelFunc
	taken sync.WaitGroup
}

// stand joins the queue's line and calls granted when it is first. It returns once the consumer stands in line, and
// where that is its head, once granted says so.
func (sh *shift) stand(granted func(lease *locks.Lease, ready func())) error {
	joined := make(chan struct{})
	ready := sync.OnceFunc(func() { close(joined) })
	line := locks.NewMutex(sh.q.client, sh.q.below(lockDir), locks.WithQueued(func(int) { ready() }))
	sh.place.taken.Go(func() {
		lease, err := line.Lock(sh.place.ctx)
		if err != nil {
			sh.end(err)
			return
		}
		defer func() { _ = lease.Release(context.WithoutCancel(sh.place.ctx)) }() // never fails
		sh.tasks.start(func() {
			defer ready()
			if lease.Session() == sh.s.ID() {
				sh.c.mu.Lock()
				sh.leads = true
				sh.c.mu.Unlock()
				granted(lease, ready)
			}
			if sh.ctx.Err() == nil {
				sh.end(fmt.Errorf("%w: %w", errStale, context.Cause(lease.Context())))
			}
		})
		<-sh.place.ctx.Done()
	})
	select {
	case <-joined:
		return nil
	case <-sh.ctx.Done():
		return context.Cause(sh.ctx)
	}
}

// leave leaves the line once the servers have all that the shift has written, or have ended its session.
func (sh *shift) leave() {
	select {
	case <-sh.owed.done():
	case <-sh.s.Done():
	}
	sh.place.leave()
	sh.place.taken.Wait()
}

// write writes parts of the shift's, before it leaves the line.
func (sh *shift) write(parts ...*part) {
	for _, p := range parts {
		then := p.then
		if !sh.owed.begin() {
			continue
		}
		p.then = func(results []framework.OpResult, err error) {
			defer sh.owed.finish()
			if then != nil {
				then(results, err)
			}
		}
	}
	sh.q.writer.add(parts...)
}
