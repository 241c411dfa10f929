package workflow

import (
	"fmt"
	"time"
)

// StepOption changes how a step is run.
type StepOption func(*stepOptions) error

type stepOptions struct {
	attempts   int
	firstPause time.Duration
	timeout    time.Duration // of one attempt; 0: none
}

func stepDefaults() stepOptions { return stepOptions{attempts: 1} }

// longestPause bounds the pauses between the attempts of WithRetry.
const longestPause = 5 * time.Minute

// WithRetry runs a step that fails again, up to so many attempts in all, by default 1. The pauses begin at firstPause and double up to 5 minutes; each is between half and one
// and a half of that, at random. An error that wraps Permanent's is not retried. The next executor counts from 1 again.
func WithRetry(attempts int, firstPause time.Duration) StepOption {
	return func(o *stepOptions) error {
		if attempts < 1 {
			return fmt.Errorf("%w: %d attempts, there must be at least 1", ErrOption, attempts)
		}
		if firstPause <= 0 || firstPause > longestPause {
			return fmt.Errorf("%w: first pause %v, it must be more than 0 and at most %v", ErrOption, firstPause, longestPause)
		}
		o.attempts, o.firstPause = attempts, firstPause
		return nil
	}
}

// WithTimeout ends the context of each attempt after d. By default only the executor's end and the caller's context end it. A function that does not heed its context
// runs on, and Step waits for it.
func WithTimeout(d time.Duration) StepOption {
	return func(o *stepOptions) error {
		if d <= 0 {
			return fmt.Errorf("%w: timeout %v, it must be more than 0", ErrOption, d)
		}
		o.timeout = d
		return nil
	}
}
