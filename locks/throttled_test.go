package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestThrottledWatchKeepsPlaceInLine throttles the reads by which waiters watch their predecessors. Each waiter keeps its node, and is granted in its turn.
func TestThrottledWatchKeepsPlaceInLine(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		holder := lock(t, w.member("h").Client)
		a := newAsker(t)
		names := []string{"1", "2", "3"}
		var nodes []string
		for _, name := range names {
			m := w.member(name)
			s, err := m.Session(t.Context())
			require.NoError(t, err)
			throttle := w.zk.Throttle(5, zktest.Match{Op: zktest.OpGetData, Session: s.ID()})
			a.ask(name, locks.NewMutex(m.Client, path).Lock)
			nodes = w.zk.Children(path)
			<-throttle.Hit()
			time.Sleep(timeout)
		}
		require.Empty(t, a.now())
		require.Len(t, nodes, 4)
		require.Equal(t, nodes, w.zk.Children(path))
		released(t, holder)
		for _, name := range names {
			require.Equal(t, []string{name}, a.now())
			a.release(name)
		}
		w.nothingLeft(t)
	})
}
