package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestThrottledWatchKeepsPlaceInLine throttles the reads by which waiters watch their predecessors.
// Each waiter keeps its node, and is granted in its turn.
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

// TestRefusedRequestRecordIsTriedAgain: a quota is used up while two requests of a deadlock create
// their records. They find the deadlock after it was raised.
func TestRefusedRequestRecordIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, zktest.Start(t, zktest.WithEnforcedQuotas())}
		a, b := w.member("a"), w.member("b")
		la, err := locks.NewMutex(a.Client, "/locks/a").Lock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
		require.NoError(t, err)
		older := waitsOn(la.Context(), locks.NewMutex(a.Client, "/locks/b"))
		time.Sleep(100 * time.Millisecond)
		younger := waitsOn(lb.Context(), locks.NewMutex(b.Client, "/locks/a"))
		synctest.Wait()
		require.NoError(t, a.MakeDirs(t.Context(), "/zookeeper/quota/locks"))
		require.NoError(t, a.Create(t.Context(), "/zookeeper/quota/locks/zookeeper_stats", []byte("count=0,bytes=0"),
			framework.Persistent))
		limits := "/zookeeper/quota/locks/zookeeper_limits"
		require.NoError(t, a.Create(t.Context(), limits, []byte("count=-1,bytes=-1,countHardLimit=1"),
			framework.Persistent))
		time.Sleep(30 * time.Second)
		require.Empty(t, waitsLeft(w))
		require.NoError(t, a.Delete(t.Context(), limits, framework.AnyVersion))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, len(older)+len(younger), "the request whose record was created last fails")
		failed, granted, kept := younger, older, lb
		if len(older) > 0 {
			failed, granted, kept = older, younger, la
		}
		require.ErrorIs(t, (<-failed).err, locks.ErrDeadlock)
		require.NoError(t, kept.Release(t.Context()))
		require.NoError(t, (<-granted).err)
	})
}
