package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// withWaitLimit returns a context that ends with ctx, or when the time of -w is over if one was
// given.
func withWaitLimit(ctx context.Context, wait durationFlag) (context.Context, context.CancelFunc) {
	if wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(wait), errWaitOver)
}

var errWaitOver = errors.New("the time given with -w is over")

// timedOutError says what did not happen within the time of -w, if err is the end of that time. It
// returns other errors as they are.
func timedOutError(what string, wait durationFlag, err error) error {
	if !errors.Is(err, errWaitOver) {
		return err
	}
	return exitWith(exitNotObtained, fmt.Errorf("%s within %v (-w)", what, wait.asDuration()), "")
}
