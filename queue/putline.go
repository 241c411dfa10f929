package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
)

// putLine holds the puts of one Queue that wait for room, in order. One goroutine stands in line
// for all of them, at the lock <path>/room, behind the other Queues'. While that line is not empty,
// only its first member reserves places, so each producer is the first one day.
type putLine struct {
	store   *store
	writer  *writer
	openCtx context.Context // done when the Queue is being closed
	tasks   *background.Tasks

	mu      sync.Mutex
	puts    []*waitingPut
	running bool
	leave   context.CancelFunc // leaves the line
	trying  int                // puts that the writer has got and not answered
	tried   chan struct{}      // closed when trying is 0 again
}

// waitingPut is a put that waits for room.
type waitingPut struct {
	request *writeRequest
	trying  bool       // the writer has it
	done    chan error // buffered: gets the outcome once
}

// putsWhenFirst is how many puts a Queue writes at most each time it is first in line.
const putsWhenFirst = 64

// hasPuts reports whether puts wait.
func (l *putLine) hasPuts() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.puts) > 0
}

// putInLine waits for room, behind earlier puts, and writes the request.
func (l *putLine) putInLine(ctx context.Context, r *writeRequest) error {
	wait := &waitingPut{request: r, done: make(chan error, 1)}
	l.mu.Lock()
	l.puts = append(l.puts, wait)
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if start && !l.tasks.Start(l.writeInLine) {
		l.failAll(errClosed)
	}
	select {
	case err := <-wait.done:
		return err
	case <-ctx.Done():
		if l.withdrawPut(wait) {
			return failure.Ended(ctx)
		}
		return fmt.Errorf("%w: %w", failure.Ended(ctx), errUnknown)
	}
}

// writeInLine stands in line again and again until no put waits.
func (l *putLine) writeInLine() {
	for {
		ctx, cancel := context.WithCancel(l.openCtx)
		l.mu.Lock()
		l.leave = cancel
		if len(l.puts) == 0 {
			l.running = false
			l.mu.Unlock()
			cancel()
			return
		}
		l.mu.Unlock()
		err := recipe.OnSession(ctx, l.store.client, func(*framework.Session) error { return l.writeWhenFirst(ctx) },
			failure.IsTransient, func(err error) bool { return errors.Is(err, framework.ErrNodeGone) })
		withdrawn := ctx.Err() != nil && l.openCtx.Err() == nil // the last put was; others may have come since
		cancel()
		if err != nil && !withdrawn {
			l.failAll(cmp.Or(context.Cause(l.openCtx), err))
			return
		}
	}
}

// writeWhenFirst stands in line, and writes some puts when it is first and there is room.
func (l *putLine) writeWhenFirst(ctx context.Context) error {
	lease, err := locks.NewMutex(l.store.client, l.store.nodes.RoomDir).Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(ctx) }() // goes on in the background
	for {
		s, err := l.store.client.Session(ctx)
		if err != nil {
			return err
		}
		_, _, left, err := s.WatchData(ctx, l.store.nodes.OutNode)
		if failure.IsTransient(err) && lease.Err() == nil && ctx.Err() == nil {
			continue // stay in line
		}
		if errors.Is(err, framework.ErrNoNode) { // the queue was dropped: the writer finds or makes the new one
			if l.writeSome() {
				return nil
			}
			return recipe.ErrAgain // stand in line there
		}
		if err != nil {
			return err
		}
		if l.writeSome() {
			left.Stop()
			return nil
		}
		_, _, err = recipe.WaitForFirst(ctx, lease.Context(), recipe.Sources{Watch: left})
		left.Stop()
		if err != nil {
			return err
		}
	}
}

// writeSome writes the first puts. It reports whether to leave the line: all of them had room, or
// one was larger than the capacity, and those behind it may have room without it.
func (l *putLine) writeSome() bool {
	l.mu.Lock()
	some := slices.Clone(l.puts[:min(len(l.puts), putsWhenFirst)])
	l.trying, l.tried = len(some), make(chan struct{})
	tried, full, tooLarge := l.tried, false, false
	requests := make([]*writeRequest, len(some))
	for i, wait := range some {
		wait.request, wait.trying = wait.request.retryCopy(), true
		wait.request.first = true
		wait.request.then = func(_ []framework.OpResult, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.countTried(wait)
			never := l.store.exceedsCapacity(wait.request.adds) // SetCapacity has lowered the capacity
			if tooLarge = tooLarge || never; errors.Is(err, ErrFull) && !never {
				full = true
				return
			}
			wait.done <- err
			l.removePut(wait)
		}
		requests[i] = wait.request
	}
	l.mu.Unlock()
	if len(requests) == 0 {
		return true
	}
	l.writer.addRequests(requests...)
	<-tried
	l.mu.Lock()
	defer l.mu.Unlock()
	return !full || tooLarge
}

// countTried counts a put that the writer has finished with; l.mu is held.
func (l *putLine) countTried(wait *waitingPut) {
	wait.trying = false
	if l.trying--; l.trying == 0 {
		close(l.tried)
	}
}

// withdrawPut takes a put back. It returns false if the put is on its way to the servers.
func (l *putLine) withdrawPut(wait *waitingPut) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := !wait.trying || l.writer.withdrawRequest(wait.request)
	if back && wait.trying {
		l.countTried(wait)
	}
	l.removePut(wait)
	return back
}

// removePut removes a put from the line; l.mu is held.
func (l *putLine) removePut(wait *waitingPut) {
	l.puts = slices.DeleteFunc(l.puts, func(other *waitingPut) bool { return other == wait })
	if len(l.puts) == 0 && l.leave != nil {
		l.leave()
	}
}

// failAll ends all puts with an error.
func (l *putLine) failAll(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wait := range l.puts {
		wait.done <- err
	}
	l.puts, l.running = nil, false
}
