package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// waitingPuts are a Queue's puts that wait for room, in order. One goroutine stands in line for them all at <path>/room,
// with one for each other Queue. While anybody stands there only the first takes places, so nobody is overtaken for ever.
type waitingPuts struct {
	q *core

	mu      sync.Mutex
	puts    []*waitingPut
	running bool
	stop    context.CancelFunc // ends the standing in line
	trying  int                // puts that are at the writer
	tried   chan struct{}      // closed when none is any more
}

// waitingPut is one of them.
type waitingPut struct {
	part   *part
	trying bool
	done   chan error // has room
}

// turn is how many puts of a Queue go when it is first in line.
const turn = 64

// any tells whether puts wait.
func (l *waitingPuts) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.puts) > 0
}

// put waits for room, behind those that wait, and puts.
func (l *waitingPuts) put(ctx context.Context, p *part) error {
	wait := &waitingPut{part: p, done: make(chan error, 1)}
	l.mu.Lock()
	l.puts = append(l.puts, wait)
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if start && !l.q.tasks.start(l.run) {
		l.fail(ErrClosed)
	}
	select {
	case err := <-wait.done:
		return err
	case <-ctx.Done():
		if l.giveUp(wait) {
			return framework.Ended(ctx)
		}
		return fmt.Errorf("%w: %w", framework.Ended(ctx), ErrUnknown)
	}
}

// giveUp takes a put back; false if it is on its way.
func (l *waitingPuts) giveUp(wait *waitingPut) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := !wait.trying || l.q.writer.withdraw(wait.part)
	if back && wait.trying {
		l.ended(wait)
	}
	l.remove(wait)
	return back
}

// remove forgets a put. l.mu is held.
func (l *waitingPuts) remove(wait *waitingPut) {
	l.puts = slices.DeleteFunc(l.puts, func(other *waitingPut) bool { return other == wait })
	if len(l.puts) == 0 && l.stop != nil {
		l.stop()
	}
}

// ended takes in that the writer has a put no more. l.mu is held.
func (l *waitingPuts) ended(wait *waitingPut) {
	wait.trying = false
	if l.trying--; l.trying == 0 {
		close(l.tried)
	}
}

// fail ends all puts with an error.
func (l *waitingPuts) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wait := range l.puts {
		wait.done <- err
	}
	l.puts, l.running = nil, false
}

// run stands in line again and again until no put waits.
func (l *waitingPuts) run() {
	back := l.q.client.Retries()
	for {
		ctx, cancel := context.WithCancel(l.q.work)
		l.mu.Lock()
		l.stop = cancel
		if len(l.puts) == 0 {
			l.running = false
			l.mu.Unlock()
			cancel()
			return
		}
		l.mu.Unlock()
		err := l.stand(ctx)
		given := ctx.Err() != nil && l.q.work.Err() == nil // nobody waits any more, or somebody else does
		cancel()
		switch {
		case err == nil, given:
			back.Reset()
		case l.q.work.Err() != nil:
			l.fail(context.Cause(l.q.work))
			return
		case framework.IsTransient(err) || errors.Is(err, framework.ErrNodeGone):
			_ = back.Pause(l.q.work) // the next step sees it
		default:
			l.fail(err)
			return
		}
	}
}

// stand stands in line until some puts had their turn.
func (l *waitingPuts) stand(ctx context.Context) error {
	lease, err := locks.NewMutex(l.q.client, l.q.below(roomDir)).Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }() // never fails
	for {
		s, err := l.q.client.Session(ctx)
		if err != nil {
			return err
		}
		_, _, left, err := s.WatchData(ctx, l.q.below(outNode))
		if framework.IsTransient(err) && lease.Err() == nil && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		if l.try() {
			left.Stop()
			return nil
		}
		select {
		case <-left.C():
		case <-lease.Context().Done():
			err = context.Cause(lease.Context())
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		left.Stop()
		if err != nil {
			return err
		}
	}
}

// try tries to put what waits, and tells whether there was room for all of it.
func (l *waitingPuts) try() bool {
	l.mu.Lock()
	some := slices.Clone(l.puts[:min(len(l.puts), turn)])
	l.trying, l.tried = len(some), make(chan struct{})
	tried, full := l.tried, false
	parts := make([]*part, len(some))
	for i, wait := range some {
		wait.part, wait.trying = wait.part.again(), true
		wait.part.first = true
		wait.part.then = func(_ []framework.OpResult, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.ended(wait); errors.Is(err, ErrFull) {
				full = true
				return
			}
			wait.done <- err
			l.remove(wait)
		}
		parts[i] = wait.part
	}
	l.mu.Unlock()
	if len(parts) == 0 {
		return true
	}
	l.q.writer.add(parts...)
	<-tried
	l.mu.Lock()
	defer l.mu.Unlock()
	return !full
}
