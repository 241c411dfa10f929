package framework

import (
	"context"
	"errors"
	"sync"
)

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
func again[T any](ctx context.Context, s *Session, f func(a asker, tried int) (T, error)) (T, error) {
	back := newRetries(s.client.cfg)
	for tried := 0; ; tried++ {
		var zero T
		if err := s.await(ctx); err != nil {
			return zero, err
		}
		v, err := f(asker{ctx, s}, tried)
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

// tasks are what a session has in the background.
type tasks struct {
	mu     sync.Mutex
	closed bool
	ended  chan struct{}
	wg     sync.WaitGroup
}

// start runs f unless done was called.
func (t *tasks) start(f func()) bool {
	if !t.begin() {
		return false
	}
	go func() {
		defer t.end()
		f()
	}()
	return true
}

// begin counts something that end will end, unless done was called.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	return true
}

func (t *tasks) end() { t.wg.Done() }

// done refuses new ones; its channel is closed when those under way have ended.
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
