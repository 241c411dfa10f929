package workflow

import (
	"fmt"
	"slices"
	"time"
)

// StepOption changes how a step is run.
type StepOption func(*stepOptions) error

type stepOptions struct {
	attempts        int
	firstPause      time.Duration
	timeout         time.Duration // of one attempt; 0: none
	permanentErrors []error
	recordsFailure  bool
}

func stepDefaults() stepOptions { return stepOptions{attempts: 1} }

// longestPause bounds the pauses between attempts, of steps (WithStepAttempts) and of runs
// (WithRunAttempts).
const longestPause = 5 * time.Minute

// WithStepAttempts runs a failed step again, up to so many attempts in all. Default 1: no retry.
// The pauses begin at firstPause and double up to 5 minutes; each is drawn at random between half
// and one and a half times that. A permanent error is not retried. The next executor counts from 1
// again.
func WithStepAttempts(attempts int, firstPause time.Duration) StepOption {
	return func(o *stepOptions) error {
		o.attempts, o.firstPause = attempts, firstPause
		return checkAttempts(attempts, firstPause)
	}
}

func checkAttempts(attempts int, firstPause time.Duration) error {
	switch {
	case attempts < 1:
		return fmt.Errorf("%w: %d attempts, there must be at least 1", errOption, attempts)
	case firstPause <= 0 || firstPause > longestPause:
		return fmt.Errorf("%w: first pause %v, it must be more than 0 and at most %v", errOption, firstPause,
			longestPause)
	}
	return nil
}

// WithPermanentErrors makes errors permanent that wrap one of errs, as Permanent does. The error of
// the step wraps the same one of errs each time, also when the step was run by an earlier executor:
// the record has its text.
func WithPermanentErrors(errs ...error) StepOption {
	return func(o *stepOptions) error {
		if len(errs) == 0 || slices.Contains(errs, nil) {
			return fmt.Errorf("%w: permanent errors %v, there must be at least one and none may be nil", errOption, errs)
		}
		o.permanentErrors = append(o.permanentErrors, errs...)
		return nil
	}
}

// WithRecordedFailure makes the failure of the last attempt of WithStepAttempts permanent, whatever
// the error is. Without WithStepAttempts that is the first attempt. Use it for a step whose failure
// the run compensates for, so that a later attempt of the run does not run the step again.
func WithRecordedFailure() StepOption {
	return func(o *stepOptions) error {
		o.recordsFailure = true
		return nil
	}
}

// WithTimeout ends the context of each attempt after d, with the cause framework.ErrTimeout. By
// default only the executor and the caller's context limit the time. A function that ignores its
// context runs on, and Step waits until it returns.
func WithTimeout(d time.Duration) StepOption {
	return func(o *stepOptions) error {
		if d <= 0 {
			return fmt.Errorf("%w: timeout %v, it must be more than 0", errOption, d)
		}
		o.timeout = d
		return nil
	}
}
