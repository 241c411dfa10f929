// Package cleanup has the contexts of cleanups: of calls that give back what their caller has.
package cleanup

import (
	"context"
	"fmt"
	"time"
)

// Context returns the context of a cleanup. It has the values of ctx, and ends after bound, or at
// the deadline of ctx if that still lies ahead. It does not end with ctx otherwise.
func Context(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			bound = min(bound, left)
		}
	}
	return context.WithTimeoutCause(context.WithoutCancel(ctx), bound, noAnswer(bound))
}

// noAnswer is the cause with which the context of a cleanup ends after its bound. Most cleanups end
// before, so it makes its text only when it is asked for.
type noAnswer time.Duration

func (bound noAnswer) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(bound)) }
