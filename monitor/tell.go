package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// errBusy is why an event is not told: a call before does not return.
var errBusy = errors.New("the function of WithOnEvent does not return")

// teller calls the function of WithOnEvent, one call at a time.
type teller struct {
	f       func(context.Context, Event) error // or nil
	timeout time.Duration
	log     *slog.Logger

	busy  chan struct{} // has room for the call that goes on
	calls sync.WaitGroup
}

func newTeller(s settings, log *slog.Logger) *teller {
	return &teller{f: s.onEvent, timeout: s.eventTimeout, log: log, busy: make(chan struct{}, 1)}
}

// tell tells an event. It does not wait for longer than the timeout. An error of errBusy says that the event was not told; after any other one it may have been.
func (t *teller) tell(ctx context.Context, e Event) error {
	if t.f == nil {
		return nil
	}
	select {
	case t.busy <- struct{}{}:
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no answer within %v", t.timeout))
	done := make(chan error, 1)
	t.calls.Go(func() {
		err := errors.New("it ended its goroutine")
		defer func() {
			<-t.busy
			done <- err
			cancel()
		}()
		err = t.call(ctx, e)
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

// call calls the function. A panic is an error.
func (t *teller) call(ctx context.Context, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("the function of WithOnEvent panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return t.f(ctx, e)
}
