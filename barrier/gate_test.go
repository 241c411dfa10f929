package barrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// async runs f in a goroutine; the function returned reports whether it is over, the other its
// error.
func async(f func() error) (over func() bool, err func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	over = func() bool { synctest.Wait(); return len(done) == 1 }
	return over, func() error { return <-done }
}

func wait(g *barrier.Gate) (over func() bool, err func() error) {
	return async(func() error { return g.Wait(context.Background()) })
}

func up(t *testing.T, g *barrier.Gate) bool {
	t.Helper()
	up, err := g.Raised(t.Context())
	require.NoError(t, err)
	return up
}

func TestAGateIsRaisedAndLowered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := barrier.NewGate(w.member("a").Client, path), barrier.NewGate(w.member("b").Client, path)
		require.NoError(t, a.Wait(t.Context()), "a gate that was never raised is open")
		require.NoError(t, a.Lower(t.Context()))
		for range 3 {
			require.False(t, up(t, b))
			require.NoError(t, a.Raise(t.Context()))
			require.NoError(t, b.Raise(t.Context()), "it is up and stays so")
			require.True(t, up(t, b))
			n, _ := w.Node(path)
			require.Equal(t, zktest.Persistent, n.Mode)
			first, firstErr := wait(a)
			second, secondErr := wait(b)
			time.Sleep(time.Hour)
			require.False(t, first() || second())
			require.NoError(t, b.Lower(t.Context()))
			require.True(t, first() && second())
			require.NoError(t, firstErr())
			require.NoError(t, secondErr())
		}
	})
}

func TestAHeldGateFallsWithItsHolder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := barrier.NewGate(m.Client, path), barrier.NewGate(w.member("b").Client, path)
		lease, err := a.Hold(t.Context())
		require.NoError(t, err)
		require.NoError(t, lease.Err())
		_, err = b.Hold(t.Context())
		require.ErrorIs(t, err, barrier.ErrRaised)
		require.ErrorIs(t, b.Raise(t.Context()), barrier.ErrRaised, "it would fall with the lease")
		over, waited := wait(b)
		require.False(t, over())
		m.Link.Cut()
		require.NoError(t, waited())
		require.ErrorIs(t, lease.Err(), framework.ErrSessionLost, "the holder knew it before")
		m.Link.Heal()

		lease, err = b.Hold(t.Context())
		require.NoError(t, err)
		over, waited = wait(a)
		require.False(t, over())
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, waited())

		lease, err = b.Hold(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.Lower(t.Context()))
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), framework.ErrNodeGone)
		require.NoError(t, lease.Release(t.Context())) // what the guard checks goes in the background
		w.nobody()
	})
}

// TestGateWithRevokedHolderRemainsAGate: the request for its release is added to the gate's record.
// What Curator's Revoker writes in place of the record does not last.
func TestGateWithRevokedHolderRemainsAGate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		operator := w.member("b")
		a, b := barrier.NewGate(w.member("a").Client, path), barrier.NewGate(operator.Client, path)
		lease, err := a.Hold(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		_, err = operator.Set(t.Context(), path, []byte("__REVOKE__"), framework.AnyVersion)
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, up(t, b))
		over, waited := wait(b)
		require.False(t, over())
		require.NoError(t, locks.Revoke(t.Context(), operator.Client, lease.Node()))
		<-lease.Revoked()
		require.True(t, up(t, b))
		report, err := barrier.Inspect(t.Context(), operator.Client, path)
		require.NoError(t, err)
		require.Equal(t, barrier.KindGate, report.Kind)
		require.Equal(t, "a", report.RaisedBy.Owner)
		for r, err := range barrier.List(t.Context(), operator.Client, "/") {
			require.NoError(t, err)
			require.Equal(t, report, r)
		}
		_, err = b.Hold(t.Context())
		require.ErrorIs(t, err, barrier.ErrRaised)
		require.ErrorIs(t, b.Raise(t.Context()), barrier.ErrRaised)
		require.False(t, over(), "the request lowers no gate")
		require.NoError(t, b.Lower(t.Context()))
		require.NoError(t, waited())
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, operator.Create(t.Context(), path, []byte("__REVOKE__"), framework.Persistent))
		require.ErrorIs(t, b.Wait(t.Context()), framework.ErrForeign, "no lease holds it")
	})
}

func TestWaitingAtAGateSurvives(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := barrier.NewGate(m.Client, path), barrier.NewGate(w.member("b").Client, path)
		require.NoError(t, b.Raise(t.Context()))
		over, waited := wait(a)
		for _, hurt := range []func(){
			func() { m.Link.Reset() }, w.Restart, func() { require.NoError(t, w.Expire(w.session(m).ID())) },
			func() { m.Link.Cut(); time.Sleep(3 * timeout); m.Link.Heal() },
		} {
			hurt()
			time.Sleep(timeout)
			require.False(t, over())
		}
		m.Link.Cut()
		require.NoError(t, b.Lower(t.Context()))
		require.NoError(t, b.Raise(t.Context()))
		m.Link.Heal()
		require.NoError(t, waited(), "it fell for a moment while nobody could see it")
	})
}

func TestAWaitAtAGateEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		g := barrier.NewGate(m.Client, path)
		require.NoError(t, g.Raise(t.Context()))
		for _, hurt := range []func(){func() {}, m.Link.Cut} {
			hurt()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			err := g.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "wait at "+path)
			require.Equal(t, time.Second, time.Since(began))
		}
		m.Link.Heal()
	})
}

// TestAGatesLostReplies loses the reply of what raises and lowers it.
func TestAGatesLostReplies(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		g := barrier.NewGate(m.Client, path)
		require.NoError(t, m.MakeDirs(t.Context(), "/barriers"))
		for _, lost := range []struct {
			op  zktest.Op
			nth int
		}{{zktest.OpCreate, 1}, {zktest.OpMulti, 1}, {zktest.OpMulti, 2}, {zktest.OpMulti, 3}, {zktest.OpGetData, 1}} {
			f := w.DropReply(lost.nth, zktest.Match{Op: lost.op, Path: path})
			require.NoError(t, g.Raise(t.Context()))
			require.True(t, up(t, g))
			require.NoError(t, g.Lower(t.Context()))
			require.False(t, up(t, g))
			<-f.Hit()
		}
	})
}

// TestGateRaisedAgainIsNotLowered loses the reply to the deletion. Before the next connection,
// somebody else raises the gate.
func TestGateRaisedAgainIsNotLowered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := barrier.NewGate(m.Client, path), barrier.NewGate(w.member("b").Client, path)
		require.NoError(t, a.Raise(t.Context()))
		f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: path, Func: zktest.Request.Writes})
		_, lowered := async(func() error { return a.Lower(t.Context()) })
		<-f.Hit()
		m.Link.Cut()
		require.NoError(t, b.Raise(t.Context()))
		m.Link.Heal()
		require.NoError(t, lowered())
		require.True(t, up(t, b))
	})
}

func TestGateRefusesForeignNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		g := barrier.NewGate(m.Client, path)
		refused := func() {
			t.Helper()
			_, err := g.Hold(t.Context())
			for _, err := range []error{g.Raise(t.Context()), g.Wait(t.Context()), g.Lower(t.Context()), err} {
				require.ErrorIs(t, err, framework.ErrForeign)
			}
		}
		lease, err := locks.NewMutex(m.Client, path).Lock(t.Context())
		require.NoError(t, err)
		refused()
		require.NoError(t, lease.Release(t.Context()))
		refused()
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		require.NoError(t, m.Create(t.Context(), path, []byte("important"), framework.Persistent))
		refused()
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		claim, err := locks.NewClaim(m.Client, path).Lock(t.Context())
		require.NoError(t, err)
		refused()
		require.NoError(t, claim.Release(t.Context()))
		require.NoError(t, m.Create(t.Context(), path, []byte("10.0.0.7"), framework.Persistent))
		require.True(t, up(t, g), "Curator's")
		require.NoError(t, g.Raise(t.Context()))
		require.NoError(t, g.Lower(t.Context()))
	})
}
