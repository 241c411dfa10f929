package election

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// healthCheck is the check that keeps a sick candidate from leading.
type healthCheck struct {
	check  func(context.Context) error
	period time.Duration
	turn   chan struct{} // of the one check that may run
}

func newHealthCheck(check func(context.Context) error, period time.Duration) *healthCheck {
	return &healthCheck{check: check, period: period, turn: make(chan struct{}, 1)}
}

// runCheck asks once. No answer within the period is an answer too; a check that goes on after that is waited for
// before the next is asked.
func (h *healthCheck) runCheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.period)
	defer cancel()
	answer := make(chan error, 1)
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: the last check has not returned yet", ErrUnhealthy)
	}
	go func() {
		defer func() { <-h.turn }()
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

// waitUntilHealthy waits until the candidate is healthy.
func (h *healthCheck) waitUntilHealthy(ctx context.Context) error {
	for h.runCheck(ctx) != nil {
		if err := framework.Pause(ctx, h.period); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilSick waits until the candidate is sick, and tells why; or until ctx ends.
func (h *healthCheck) waitUntilSick(ctx context.Context) error {
	for framework.Pause(ctx, h.period) == nil {
		if err := h.runCheck(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return framework.Ended(ctx)
}

// waitUntilFit waits until this candidate may lead. The context returned is done with ctx, when the check
// fails, which is its cause then, or by end.
func (e *Election) waitUntilFit(ctx context.Context) (well context.Context, end context.CancelFunc, err error) {
	if e.health == nil {
		return ctx, func() {}, nil
	}
	if err := e.health.waitUntilHealthy(ctx); err != nil {
		return nil, nil, err
	}
	well, cancel := context.WithCancelCause(ctx)
	go func() { cancel(e.health.waitUntilSick(well)) }()
	return well, func() { cancel(context.Canceled) }, nil
}
