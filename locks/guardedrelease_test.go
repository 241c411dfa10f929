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

// TestNextHolderWritesBehindLateGuardedWrites: a guarded write of a holder is on its way on another
// client when the holder releases. The server refuses the deletion of the holder's node at first.
// The next holder is of the same process: it is granted when the node is gone, and its write comes
// behind the late one, or the late one is refused.
func TestNextHolderWritesBehindLateGuardedWrites(t *testing.T) {
	for name, opts := range map[string][]locks.MutexOption{"": nil, "WithAsyncRelease": {locks.WithAsyncRelease()}} {
		for _, refused := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					a, b := w.member("a"), w.member("b")
					s, err := a.Session(t.Context())
					require.NoError(t, err)
					require.NoError(t, a.Create(t.Context(), "/x", nil, framework.Persistent))
					mutex := locks.NewMutex(a.Client, path, opts...)
					first, next := held(t, t.Context(), mutex), newAsker(t)
					next.ask("next", mutex.Lock)
					b.Link.BlackHole(true, false)
					late := make(chan error, 1)
					go func() {
						set := framework.SetOp("/x", []byte("former"), framework.AnyVersion)
						_, err := b.Multi(t.Context(), first.Guard(), set)
						late <- err
					}()
					synctest.Wait()
					if refused {
						w.zk.Throttle(1, zktest.Match{Op: zktest.OpDelete, Session: s.ID()})
					}
					go func() { _ = first.Release(t.Context()) }()
					if refused {
						require.Empty(t, next.now(), "the former holder's node is still there")
						b.Link.Heal()
						require.NoError(t, <-late, "before the next holder")
						time.Sleep(time.Second)
					}
					require.Equal(t, []string{"next"}, next.now())
					set := framework.SetOp("/x", []byte("next"), framework.AnyVersion)
					_, err = a.Multi(t.Context(), next.lease("next").Guard(), set)
					require.NoError(t, err)
					if !refused {
						b.Link.Heal()
						require.ErrorIs(t, <-late, framework.ErrNoNode)
					}
					data, _, err := a.Get(t.Context(), "/x")
					require.NoError(t, err)
					require.Equal(t, "next", string(data))
					next.release("next")
					synctest.Wait()
					w.nothingLeft(t)
				})
			})
		}
	}
}

// TestUnguardedLeaseIsPassedOnAtOnce: without a guard, the next holder of the same process does not
// wait for the answer to the deletion.
func TestUnguardedLeaseIsPassedOnAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		s, err := a.Session(t.Context())
		require.NoError(t, err)
		first, next := lock(t, a.Client), newAsker(t)
		next.ask("next", locks.NewMutex(a.Client, path).Lock)
		w.zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpDelete, Session: s.ID()})
		released := make(chan struct{})
		go func() {
			defer close(released)
			_ = first.Release(t.Context())
		}()
		require.Equal(t, []string{"next"}, next.now())
		<-released
		next.release("next")
	})
}

// TestNextHolderWaitsForARefusedDeletion: the servers refuse to delete the node of a holder whose
// guard was used. Its writes stay possible, so nobody is granted.
func TestNextHolderWaitsForARefusedDeletion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		noDelete := []framework.ACL{{Perms: framework.PermAll &^ framework.PermDelete, Scheme: "world", ID: "anyone"}}
		a := w.zk.Member(t, "a", framework.Config{SessionTimeout: timeout, ParentACL: noDelete})
		first, next := lock(t, a.Client), newAsker(t)
		_ = first.Guard()
		next.ask("next", locks.NewMutex(a.Client, path).Lock)
		go func() { _ = first.Release(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, next.now())
		require.Len(t, w.zk.Children(path), 2)
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, next.now(), 1, "the wait has failed")
	})
}
