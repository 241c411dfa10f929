package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTheLoserEndsFirst measures it: the lease's context is done before the winner's Lock returns.
func TestTheLoserEndsFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		la := lock(t, a.Client)
		var lost time.Time
		context.AfterFunc(la.Context(), func() { lost = time.Now() })
		a.Link.BlackHole(true, true)
		lb := lock(t, b.Client)
		synctest.Wait()
		require.False(t, lost.IsZero())
		require.Less(t, lost, time.Now())
		require.NoError(t, lb.Err())
		a.Link.Heal()
	})
}

func TestGuardedWritesOfALateHolderAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		require.NoError(t, a.Create(t.Context(), "/data", nil, framework.Persistent))
		la := lock(t, a.Client)
		_, err := a.Multi(t.Context(), la.Guard(), framework.SetOp("/data", []byte("a"), framework.AnyVersion))
		require.NoError(t, err)
		// The operator's delete stands for what a stopped process does not see: its lease still
		// looks good here.
		require.NoError(t, b.Delete(t.Context(), la.Node(), framework.AnyVersion))
		require.NoError(t, la.Err())
		_, err = a.Multi(t.Context(), la.Guard(), framework.SetOp("/data", []byte("late"), framework.AnyVersion))
		require.ErrorIs(t, err, framework.ErrNoNode)
		time.Sleep(timeout)
		require.ErrorIs(t, la.Err(), framework.ErrNodeGone)
		synctest.Wait() // a proof of life is a transaction too
		before := w.zk.Requests()[zktest.OpMulti]
		_, err = a.Multi(t.Context(), la.Guard(), framework.SetOp("/data", []byte("late"), framework.AnyVersion))
		require.ErrorIs(t, err, framework.ErrNodeGone)
		require.Equal(t, before, w.zk.Requests()[zktest.OpMulti], "refused before it was sent")
		n, _ := w.zk.Node("/data")
		require.Equal(t, "a", string(n.Data))
	})
}

func TestAWaiterKeepsItsPlaceThroughASuspension(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, first, second := w.member("h"), w.member("first"), w.member("second")
		held := lock(t, h.Client)
		got := make(chan string, 2)
		wait := func(m *zktest.Member) {
			go func() {
				l := lock(t, m.Client)
				got <- m.Link.Name()
				_ = l.Release(t.Context())
			}()
			synctest.Wait()
		}
		wait(first)
		wait(second)
		first.Link.Cut()
		time.Sleep(timeout / 8)
		first.Link.Heal()
		time.Sleep(timeout)
		require.NoError(t, held.Release(t.Context()))
		require.Equal(t, "first", <-got)
		require.Equal(t, "second", <-got)
	})
}

func TestAWaiterQueuesAgainAfterASessionLoss(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, first, second := w.member("h"), w.member("first"), w.member("second")
		held := lock(t, h.Client)
		got := make(chan string, 2)
		for _, m := range []*zktest.Member{first, second} {
			go func() {
				l := lock(t, m.Client)
				got <- m.Link.Name()
				_ = l.Release(t.Context())
			}()
			synctest.Wait()
		}
		s, err := first.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.zk.Expire(s.ID()))
		time.Sleep(timeout)
		require.Len(t, w.zk.Children(path), 3)
		require.NoError(t, held.Release(t.Context()))
		require.Equal(t, "second", <-got)
		require.Equal(t, "first", <-got)
	})
}

func TestWaiterWithDeletedNodeQueuesAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, a := w.member("h"), w.member("a")
		held := lock(t, h.Client)
		got := make(chan *locks.Lease)
		go func() { got <- lock(t, a.Client) }()
		synctest.Wait()
		for _, name := range w.zk.Children(path) {
			if node := path + "/" + name; node != held.Node() {
				require.NoError(t, h.Delete(t.Context(), node, framework.AnyVersion))
			}
		}
		time.Sleep(time.Second)
		require.NoError(t, held.Release(t.Context()))
		l := <-got
		time.Sleep(2 * timeout)
		if l.Err() != nil { // granted by the deletion alone: the next proof of life has noticed
			require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
			require.Empty(t, w.zk.Children(path))
		}
	})
}

func TestReleaseWhileCutOffIsFinishedInTheBackground(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := lock(t, a.Client)
		a.Link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Release(ctx), framework.ErrUnconfirmed)
		require.ErrorIs(t, l.Err(), locks.ErrReleased)
		time.Sleep(timeout / 8)
		a.Link.Heal()
		began := time.Now()
		lock(t, b.Client)
		require.Less(t, time.Since(began), timeout, "not by the session's end")
	})
}
