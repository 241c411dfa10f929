package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WithWaitLimit returns a context that ends with ctx, or when the time of -w is over if one was
// given.
func WithWaitLimit(ctx context.Context, wait DurationFlag) (context.Context, context.CancelFunc) {
	if wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(wait), ErrWaitOver)
}

var ErrWaitOver = errors.New("the time given with -w is over")

// TimedOutError says what did not happen within the time of -w, if err is the end of that time. It
// returns other errors as they are.
func TimedOutError(what string, wait DurationFlag, err error) error {
	if !errors.Is(err, ErrWaitOver) {
		return err
	}
	return ExitWith(ExitNotObtained, fmt.Errorf("%s within %v (-w)", what, wait.AsDuration()), "")
}
