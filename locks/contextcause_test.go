package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestACauseIsNoAnswer cancels a wait with a cause that looks like a server's answer, as an
// errgroup does when a sibling has failed, while the waiter asks for its predecessor. It was
// granted once.
func TestACauseIsNoAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		held := lock(t, a.Client)
		f := w.zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetData})
		defer f.Cancel()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(failure.Wrap("get", "/x", framework.ErrNoNode)) })
		_, err := locks.NewMutex(b.Client, path).Lock(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, held.Err())
	})
}

func TestAPanicOfTheQueuedFunctionLeavesNoNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		lock(t, a.Client)
		require.Panics(t, func() {
			_, _ = locks.NewMutex(b.Client, path, locks.WithOnWait(func(int) { panic("x") })).Lock(t.Context())
		})
		time.Sleep(time.Second)
		require.Len(t, w.zk.Children(path), 1)
	})
}

// TestContextAndSessionEndTogether asks for the context's error then.
func TestContextAndSessionEndTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		lock(t, a.Client)
		s := sessionOf(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, func() {
			cancel()
			_ = w.zk.Expire(s.ID())
		})
		_, err := locks.NewMutex(b.Client, path).Lock(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, failure.IsTransient(err))
	})
}
