package framework

import (
	"context"
	"errors"
	"sync"
)

// call runs f on the session's connection, for no longer than ctx and the session last. A call given
// up on goes on in the background until the connection answers or breaks; its effect is unknown.
func call[T any](ctx context.Context, s *Session, f func(*zkConn) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	if !s.tasks.start(func() {
		v, err := f(s.zk)
		done <- result{v, err}
	}) {
		var zero T
		return zero, context.Cause(s.ctx)
	}
	var zero T
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return zero, Ended(ctx)
	case <-s.ctx.Done():
		return zero, context.Cause(s.ctx)
	}
}

// await waits until the session is connected.
func (s *Session) await(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return Ended(ctx)
	}
	select {
	case <-s.connected():
		return nil
	case <-ctx.Done():
		return Ended(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// again runs f, which must be safe to repeat, until its outcome is known: each time that the
// connection is lost, it waits for the next one. f is told how often it was tried before.
func again[T any](ctx context.Context, s *Session, f func(z *zkConn, tried int) (T, error)) (T, error) {
	back := newRetries(s.client.cfg)
	for tried := 0; ; tried++ {
		var zero T
		if err := s.await(ctx); err != nil {
			return zero, err
		}
		v, err := call(ctx, s, func(z *zkConn) (T, error) { return f(z, tried) })
		if !errors.Is(err, ErrSuspended) {
			return v, err
		}
		if tried == 0 { // most often the connection has just been replaced
			continue
		}
		if err := back.Pause(ctx); err != nil {
			return zero, err
		}
	}
}

// tasks are the goroutines of a session.
type tasks struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// start runs f unless wait was called.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(f)
	return true
}

// wait refuses new goroutines and waits for those that run.
func (t *tasks) wait() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}
