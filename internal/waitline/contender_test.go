package waitline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestContenderLeavesItsLocalContendersOnce: a semaphore's contender leaves when its permits are
// granted, and again if the session ends right after that. The second call must not end another
// contender's use of the local contenders.
func TestContenderLeavesItsLocalContendersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := zktest.Start(t).Member(t, "a", framework.Config{SessionTimeout: 6 * time.Second}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		l := New("/a", Filter{Kind: Mutex}, nil)
		first, second := l.newContender(s), l.newContender(s)
		first.WakeNext()
		first.WakeNext()
		require.Same(t, second.localContenders, l.newContender(s).localContenders, "second still uses them")
	})
}

// TestEndedContendersLetSessionSleep: the context of a request may end just before its session
// joins the line.
func TestEndedContendersLetSessionSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 6 * time.Second
		client := zktest.Start(t).Member(t, "a", framework.Config{SessionTimeout: timeout}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		line := New("/a", Filter{Kind: Mutex}, nil)
		_, w := NewTelemetry(client, "/a", "mutex").StartWait(t.Context(), "acquire")
		defer w.End(0, nil)
		c, err := line.Wait(t.Context(), s, nil, w)
		require.NoError(t, err)
		hold, err := primitives.Of(s).Hold(t.Context(), c.Node())
		require.NoError(t, err)
		hold.End(nil)
		require.True(t, client.Status().Awake)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			_, err = line.Wait(ended, s, nil, w)
			require.ErrorIs(t, err, context.Canceled)
			time.Sleep(timeout / 2)
		}
		require.False(t, client.Status().Awake)
	})
}
