package framework

import (
	"context"
	"errors"
	"sync"
	"time"
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
// connection is lost, it waits for the next one.
func again[T any](ctx context.Context, s *Session, f func(a asker) (T, error)) (T, error) {
	return repeat(ctx, s, f, func(err error) bool { return errors.Is(err, ErrSuspended) || refusedUnseen(err) })
}

// untilSent runs f until its request was sent. A request that no server has seen, or that the servers have put off, is repeated.
func untilSent[T any](ctx context.Context, s *Session, f func(a asker) (T, error)) (T, error) {
	return repeat(ctx, s, f, refusedUnseen)
}

// refusedUnseen tells that a request has certainly not been carried out and may be sent again as it is.
func refusedUnseen(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, errQueueFull) || errors.Is(err, ErrOverloaded)
}

// repeat runs f as long as its error is one to be repeated, ctx lasts and the session stands.
func repeat[T any](ctx context.Context, s *Session, f func(a asker) (T, error), repeatable func(error) bool) (T, error) {
	var zero T
	back := newRetries(s.client.cfg)
	for tries := 1; ; tries++ {
		if err := s.await(ctx); err != nil {
			return zero, err
		}
		v, err := f(asker{ctx: ctx, s: s})
		if !repeatable(err) {
			return v, err
		}
		switch {
		case errors.Is(err, errQueueFull):
			err = s.awaitRoom(ctx)
		case tries == 1 && errors.Is(err, ErrSuspended): // most often the connection has just been replaced
			err = nil
		default:
			err = s.pause(ctx, back)
		}
		if err != nil {
			return zero, err
		}
	}
}

// awaitRoom waits until the connection takes more requests, or has ended.
func (s *Session) awaitRoom(ctx context.Context) error {
	select {
	case <-s.mon.Room():
		return nil
	case <-ctx.Done():
		return s.ended(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// pause waits before the next try.
func (s *Session) pause(ctx context.Context, back *Retries) error {
	t := time.NewTimer(back.next())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return s.ended(ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
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
