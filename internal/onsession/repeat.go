// Package onsession repeats a step on one session after the other.
package onsession

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// Repeat calls step with the session that next returns, until step is done or fails for good. The
// result of step decides:
//
//   - nil: Repeat returns nil.
//   - any error after ctx has ended: Repeat returns failure.Ended(ctx).
//   - an error that wraps failure.ErrSessionLost, from a session that has ended: Repeat calls step
//     with the next session. It does not pause, since the client pauses before it opens a session.
//   - an error that wraps failure.ErrSessionLost while the session stands, or for which again
//     returns true: Repeat calls pause with the time at which the attempt began, and then step. It
//     returns failure.Ended(ctx) if pause fails.
//   - any other error: Repeat returns it, as it returns an error of next.
func Repeat[S interface{ Err() error }](ctx context.Context, next func(context.Context) (S, error), step func(S) error,
	again func(error) bool, pause func(ctx context.Context, began time.Time) error) error {
	for {
		began := time.Now()
		s, err := next(ctx)
		if err != nil {
			return err
		}
		err = step(s)
		switch lost := errors.Is(err, failure.ErrSessionLost); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return failure.Ended(ctx)
		case lost && s.Err() != nil:
			continue
		case !lost && !again(err):
			return err
		}
		if pause(ctx, began) != nil {
			return failure.Ended(ctx)
		}
	}
}
