package election

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// healthCheck is the check of WithHealth.
type healthCheck struct {
	check   func(context.Context) error
	period  time.Duration
	running chan struct{} // has room for the one call that may run
}

func newHealthCheck(check func(context.Context) error, period time.Duration) *healthCheck {
	return &healthCheck{check: check, period: period, running: make(chan struct{}, 1)}
}

// waitUntilHealthy waits until a check succeeds. The context that it returns ends with ctx, by stop, or when a later check fails; the check's
// error is its cause then. A nil health check always succeeds.
func (h *healthCheck) waitUntilHealthy(ctx context.Context) (healthy context.Context, stop context.CancelFunc, err error) {
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

// runOnce calls the check once. No answer within the period is a failure, too. If the check is still running then, the next call waits for its end.
func (h *healthCheck) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.period)
	defer cancel()
	answer := make(chan error, 1)
	select {
	case h.running <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: the last check has not returned yet", ErrUnhealthy)
	}
	go func() {
		defer func() { <-h.running }()
		answer <- h.check(ctx)
	}()
	select {
	case err := <-answer:
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnhealthy, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: no answer within %v", ErrUnhealthy, h.period)
	}
}
