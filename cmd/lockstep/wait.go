package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// withWaitLimit is ctx, or ends after a time that was given.
func withWaitLimit(ctx context.Context, wait durationFlag) (context.Context, context.CancelFunc) {
	if wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(wait), errWaitOver)
}

var errWaitOver = errors.New("the time given with -w is over")

// timedOutError makes the end of -w's time the reason why something was given up, and says so once. Other errors stay.
func timedOutError(what string, wait durationFlag, err error) error {
	if !errors.Is(err, errWaitOver) {
		return err
	}
	return &exitError{exitNotObtained, fmt.Errorf("%s within %v, the time that -w gives", what, wait.asDuration()), ""}
}
