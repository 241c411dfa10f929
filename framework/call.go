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
		return zero, s.ended(ctx)
	case <-s.ctx.Done():
		return zero, context.Cause(s.ctx)
	}
}

// ended tells why a call is over whose context is done, perhaps since the session has ended.
func (s *Session) ended(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return Ended(ctx)
}

// await waits until the session is connected.
func (s *Session) await(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.ended(ctx)
	}
	select {
	case <-s.connected():
		return nil
	case <-ctx.Done():
		return s.ended(ctx)
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
		if back.Pause(ctx) != nil {
			return zero, s.ended(ctx)
		}
	}
}

// tasks are the goroutines of a session.
type tasks struct {
	mu     sync.Mutex
	closed bool
	ended  chan struct{}
	wg     sync.WaitGroup
}

// start runs f unless done was called.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(f)
	return true
}

// done refuses new goroutines; its channel is closed when those that run have ended.
func (t *tasks) done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed, t.ended = true, make(chan struct{})
		go func() {
			defer close(t.ended)
			t.wg.Wait()
		}()
	}
	return t.ended
}
