package framework

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
)

// caller sends a session's requests: it waits for the connection, repeats what may be repeated,
// and maps the client's paths to the servers'.
type caller struct {
	transport *link.Transport
	ns        namespace
	cfg       Config

	session       context.Context        // done when the session has ended
	whenConnected func() <-chan struct{} // closed while the session is connected
	sessionID     func() int64
	deleted       func(full ...string) // called with nodes that the servers have deleted, or do not have
	requests      *atomic.Int64        // counts them, for the client
}

// sendRequests queues requests for the connection, and counts them.
func (c *caller) sendRequests(calls ...*link.Call) {
	c.requests.Add(int64(len(calls)))
	c.transport.Offer(calls...)
}

// callEnded returns why a call has ended whose context is done: the session's end comes first,
// otherwise it is the context's.
func (c *caller) callEnded(ctx context.Context) error {
	if c.session.Err() != nil {
		return context.Cause(c.session)
	}
	return failure.Ended(ctx)
}

// waitConnected waits until the session is connected.
func (c *caller) waitConnected(ctx context.Context) error {
	if ctx.Err() != nil {
		return c.callEnded(ctx)
	}
	select {
	case <-c.whenConnected():
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// repeatUntilKnown runs f, which must be safe to repeat, until its outcome is known: each time that
// the connection is lost, it waits for the next one.
func repeatUntilKnown[T any](ctx context.Context, c *caller, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, c, f, func(err error) bool { return errors.Is(err, ErrSuspended) || wasNotExecuted(err) })
}

// repeatUntilSent runs f until its request was sent. It repeats a request that was not sent, or
// that the servers have throttled.
func repeatUntilSent[T any](ctx context.Context, c *caller, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, c, f, wasNotExecuted)
}

// wasNotExecuted reports whether a request has certainly not been executed and may be sent again.
func wasNotExecuted(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, errQueueFull) || errors.Is(err, ErrOverloaded)
}

// repeatWhile runs f while its error is repeatable, until ctx or the session ends.
func repeatWhile[T any](ctx context.Context, c *caller, f func(a requester) (T, error),
	repeatable func(error) bool) (T, error) {
	var zero T
	back := backoff.New(c.cfg.RetryBase, c.cfg.RetryMax)
	for tries := 1; ; tries++ {
		if err := c.waitConnected(ctx); err != nil {
			return zero, err
		}
		v, err := f(requester{ctx: ctx, caller: c})
		if !repeatable(err) {
			return v, err
		}
		switch {
		case errors.Is(err, errQueueFull):
			err = c.waitForQueueRoom(ctx)
		case tries == 1 && errors.Is(err, ErrSuspended): // most likely the connection has just been replaced
			err = nil
		default:
			err = c.pauseBeforeRetry(ctx, back)
		}
		if err != nil {
			return zero, err
		}
	}
}

// waitForQueueRoom waits until the send queue has room, or the connection has ended.
func (c *caller) waitForQueueRoom(ctx context.Context) error {
	select {
	case <-c.transport.Room():
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// pauseBeforeRetry waits before the next try.
func (c *caller) pauseBeforeRetry(ctx context.Context, back *backoff.Backoff) error {
	timer := time.NewTimer(back.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// maxRequest is the largest request that a server accepts by default (jute.maxbuffer), less its
// header.
const maxRequest = 0xfffff - 1024

// checkPath refuses bad paths and requests that are too large for a server, and returns the
// server's path.
func (c *caller) checkPath(path string, size int) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", err
	}
	full := c.ns.serverPath(path)
	if total := len(full) + size; total > maxRequest {
		return "", fmt.Errorf("%w: path and data have %d bytes, a server takes at most %d", ErrTooLarge,
			total, maxRequest)
	}
	return full, nil
}

// partOverhead is the size of a part of a request without its path and data.
const partOverhead = 64

// checkRequestSize refuses a request of many parts that is too large for a server.
func checkRequestSize(total int) error {
	if total > maxRequest {
		return fmt.Errorf("%w: the request has %d bytes, a server takes at most %d", ErrTooLarge, total, maxRequest)
	}
	return nil
}
