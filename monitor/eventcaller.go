package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/usercode"
)

// errBusy says that the function was not called with an event, because an earlier call has not
// returned.
var errBusy = errors.New("an earlier call of the function of WithOnEvent has not returned")

// eventCaller calls the function of WithOnEvent, one call at a time.
type eventCaller struct {
	f       func(context.Context, Event) error // or nil
	timeout time.Duration
	log     *slog.Logger

	busy  chan struct{}  // holds one value while a call is under way
	calls sync.WaitGroup // the calls that have not returned
}

func newEventCaller(s settings, log *slog.Logger) *eventCaller {
	return &eventCaller{f: s.onEvent, timeout: s.eventTimeout, log: log, busy: make(chan struct{}, 1)}
}

// callWithEvent calls the function with an event, and waits until it returns, ctx ends or the
// timeout has passed. It returns nil if there is no function, and errBusy, without a call, if an
// earlier call has not returned. After any other error the function was called, and may have done
// its work.
func (c *eventCaller) callWithEvent(ctx context.Context, e Event) error {
	if c.f == nil {
		return nil
	}
	select {
	case c.busy <- struct{}{}:
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout,
		fmt.Errorf("the function of WithOnEvent has not returned within %v", c.timeout))
	done := make(chan error, 1)
	c.calls.Go(func() {
		err := usercode.Call(c.log, errPanic, "the function of WithOnEvent", nil,
			func() error { return c.f(ctx, e) })
		<-c.busy
		done <- err
		cancel()
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done:
			return err
		default:
			return context.Cause(ctx)
		}
	}
}
