package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestALostReplyOfAReleaseLeavesTheNextClaimAlone: the retried deletion must not delete the next
// one's node, which has the same name.
func TestALostReplyOfAReleaseLeavesTheNextClaimAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		next, third := newAsker(t), newAsker(t)
		next.ask("b", locks.NewClaim(b.Client, pathMutex).Lock)
		f := w.zk.DropReply(1, zktest.Match{Session: l.Session(), Func: func(r zktest.Request) bool {
			return r.Op == zktest.OpMulti && r.Parts[0].Op == zktest.OpDelete
		}})
		released(t, l)
		<-f.Hit()
		require.Equal(t, []string{"b"}, next.now())
		third.ask("c", locks.NewClaim(c.Client, pathMutex).Lock)
		time.Sleep(timeout / 10)
		require.Empty(t, third.now(), "b holds: %v", next.lease("b").Err())
		require.Equal(t, []string{pathMutex}, w.claims())
	})
}

// TestClaimTakenOverEndsItsRun: deleted by an operator and claimed by another before the next proof
// of life, which would find a node of that name.
func TestClaimTakenOverEndsItsRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		require.NoError(t, b.Delete(t.Context(), pathMutex, framework.AnyVersion))
		other := held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
		time.Sleep(timeout)
		require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
		require.NoError(t, l.Release(t.Context()))
		time.Sleep(timeout)
		require.NoError(t, other.Err())
	})
}

// TestClaimWhoseReplyIsLostLeavesNoFence: an operator deletes the node of a claim, and perhaps
// another client claims the path, before the claimer has found out what became of its create.
func TestClaimWhoseReplyIsLostLeavesNoFence(t *testing.T) {
	for _, taken := range []bool{false, true} {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a"), w.member("b")
			s, err := a.Session(t.Context())
			require.NoError(t, err)
			require.NoError(t, a.MakeDirs(t.Context(), "/desks"))
			lost := w.zk.DropReply(1, zktest.Match{Session: s.ID(), Func: isClaim})
			type outcome struct {
				lease *locks.Lease
				err   error
			}
			tried := make(chan outcome, 1)
			go func() {
				lease, err := locks.NewClaim(a.Client, pathMutex).TryLock(t.Context())
				tried <- outcome{lease, err}
			}()
			<-lost.Hit()
			a.Link.Cut()
			require.NoError(t, b.Delete(t.Context(), pathMutex, framework.AnyVersion))
			left := 0
			if taken {
				held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
				left = 2
			}
			a.Link.Heal()
			o := <-tried
			require.NoError(t, o.err, "the claim had succeeded")
			time.Sleep(time.Second)
			require.ErrorIs(t, o.lease.Err(), framework.ErrNodeGone)
			require.Len(t, w.ephemerals(), left)
		})
	}
}
