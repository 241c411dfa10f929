package recipe

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// FinishCleanup waits until done is closed, for as long as framework.Client.CleanupContext allows,
// also if ctx has ended. unconfirmed, unless it is nil, returns why the servers have not confirmed
// the cleanup. FinishCleanup returns nil if done is closed and unconfirmed has no reason. Otherwise
// the error wraps framework.ErrUnconfirmed and the reason, which is else the end of the time.
//
// The client may be nil: a recipe without a client has nothing to clean up, and ends at once.
func FinishCleanup(
	ctx context.Context, client *framework.Client, done <-chan struct{}, unconfirmed func() error,
) error {
	reason := func() error {
		if unconfirmed == nil {
			return nil
		}
		return unconfirmed()
	}
	if client == nil {
		<-done
		return nil
	}
	ctx, cancel := client.CleanupContext(ctx)
	defer cancel()
	select {
	case <-done:
		return failure.Unconfirmed(reason())
	case <-ctx.Done():
		return failure.Unconfirmed(cmp.Or(reason(), failure.Ended(ctx)))
	}
}

// LastDeletion is the latest deletion of a node that a recipe keeps on session after session. The
// zero value has none.
type LastDeletion struct {
	latest atomic.Pointer[primitives.Discarded]
}

// Await waits until a deletion has ended, and makes it the latest.
func (l *LastDeletion) Await(d primitives.Discarded) {
	l.latest.Store(&d)
	<-d.Done()
}

// Err is why the servers have not confirmed the latest deletion; see primitives.Discarded.
func (l *LastDeletion) Err() error {
	if d := l.latest.Load(); d != nil {
		return (*d).Err()
	}
	return nil
}
