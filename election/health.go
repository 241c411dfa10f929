package election

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// healthCheck is the check of WithHealth. All campaigns of an Election share it: a campaign that
// needs an answer while a call runs waits for the answer to that call.
type healthCheck struct {
	check  func(context.Context) error
	period time.Duration
	log    *slog.Logger
	path   string // of the election

	mu      sync.Mutex
	running *checkCall // nil while none runs
}

// checkCall is one call of the check.
type checkCall struct {
	ctx     context.Context // ends when the period is over, or when no campaign waits for the answer any more
	cancel  context.CancelFunc
	waiting int           // campaigns that wait for the answer; guarded by healthCheck.mu
	done    chan struct{} // closed when the call has returned
	err     error         // the answer, once done is closed
}

// waitUntilHealthy waits until a check succeeds. The context that it returns ends with ctx, by
// stop, or when a later check fails; the check's error is its cause then. A nil health check always
// succeeds.
func (h *healthCheck) waitUntilHealthy(ctx context.Context) (
	healthy context.Context, stop context.CancelFunc, err error) {
	if h == nil {
		return ctx, func() {}, nil
	}
	for h.runOnce(ctx) != nil {
		if err := recipe.Pause(ctx, h.period); err != nil {
			return nil, nil, err
		}
	}
	healthy, cancel := context.WithCancelCause(ctx)
	go func() { cancel(h.waitUntilUnhealthy(healthy)) }()
	return healthy, func() { cancel(context.Canceled) }, nil
}

// waitUntilUnhealthy waits until a check fails, and returns its error; or until ctx ends.
func (h *healthCheck) waitUntilUnhealthy(ctx context.Context) error {
	for recipe.Pause(ctx, h.period) == nil {
		if err := h.runOnce(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return failure.Ended(ctx)
}

// runOnce waits for the answer to one call of the check: to the one that runs, or to a new one. No
// answer within the period of that call is a failure, too.
func (h *healthCheck) runOnce(ctx context.Context) error {
	call, err := h.joinCall(ctx)
	if err != nil {
		return err
	}
	defer h.leaveCall(call)
	select {
	case <-call.done:
		if call.err != nil {
			return fmt.Errorf("%w: %w", ErrUnhealthy, call.err)
		}
		return nil
	case <-call.ctx.Done():
		return fmt.Errorf("%w: no answer within %v", ErrUnhealthy, h.period)
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}

// joinCall returns the call that runs, or a new one. A call whose time is over still runs if it
// does not heed its context; joinCall waits for its end for up to a period.
func (h *healthCheck) joinCall(ctx context.Context) (*checkCall, error) {
	ending, cancel := context.WithTimeout(ctx, h.period)
	defer cancel()
	for {
		h.mu.Lock()
		call := h.running
		if call == nil {
			call = h.startCall(ctx)
		}
		if call.ctx.Err() == nil {
			call.waiting++
			h.mu.Unlock()
			return call, nil
		}
		h.mu.Unlock()
		select {
		case <-call.done:
		case <-ending.Done():
			return nil, fmt.Errorf("%w: the last check has not returned yet", ErrUnhealthy)
		}
	}
}

// startCall calls the check in the background, with the values of the context of the campaign that
// needs it first. The caller holds mu.
func (h *healthCheck) startCall(values context.Context) *checkCall {
	call := &checkCall{done: make(chan struct{})}
	call.ctx, call.cancel = context.WithTimeout(context.WithoutCancel(values), h.period)
	h.running = call
	go func() {
		call.err = usercode.Call(h.log, failure.ErrPanic, "a health check", []any{"path", h.path},
			func() error { return h.check(call.ctx) })
		h.mu.Lock()
		h.running = nil
		h.mu.Unlock()
		close(call.done)
	}()
	return call
}

// leaveCall ends one campaign's wait for an answer.
func (h *healthCheck) leaveCall(call *checkCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if call.waiting--; call.waiting == 0 {
		call.cancel()
	}
}
