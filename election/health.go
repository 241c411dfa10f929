package election

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// health is the check that keeps a sick candidate from leading.
type health struct {
	check  func(context.Context) error
	period time.Duration
	turn   chan struct{} // of the one check that may run
}

func newHealth(check func(context.Context) error, period time.Duration) *health {
	return &health{check: check, period: period, turn: make(chan struct{}, 1)}
}

// ask asks once. No answer within the period is an answer too; a check that goes on after that is waited for
// before the next is asked.
func (h *health) ask(ctx context.Context) error {
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

// recover waits until the candidate is healthy.
func (h *health) recover(ctx context.Context) error {
	for h.ask(ctx) != nil {
		if err := framework.Pause(ctx, h.period); err != nil {
			return err
		}
	}
	return nil
}

// fail waits until the candidate is sick, and tells why; or until ctx ends.
func (h *health) fail(ctx context.Context) error {
	for framework.Pause(ctx, h.period) == nil {
		if err := h.ask(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return framework.Ended(ctx)
}

// whileHealthy waits until this candidate may lead. The context returned is done with ctx, when the check
// fails, which is its cause then, or by end.
func (e *Election) whileHealthy(ctx context.Context) (well context.Context, end context.CancelFunc, err error) {
	if e.health == nil {
		return ctx, func() {}, nil
	}
	if err := e.health.recover(ctx); err != nil {
		return nil, nil, err
	}
	well, cancel := context.WithCancelCause(ctx)
	go func() { cancel(e.health.fail(well)) }()
	return well, func() { cancel(context.Canceled) }, nil
}
