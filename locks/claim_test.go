package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

const pathMutex = "/desks/a"

// claimMembers runs a test with members on sessions of their own, and all on one.
func claimMembers(t *testing.T, test func(t *testing.T, w *world, claim func() *locks.Claim)) {
	t.Run("own sessions", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			test(t, w, func() *locks.Claim { return locks.NewClaim(w.member("m").Client, pathMutex) })
		})
	})
	t.Run("one session", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			c := w.member("m").Client
			test(t, w, func() *locks.Claim { return locks.NewClaim(c, pathMutex) })
		})
	})
}

func TestAClaimIsOneEphemeralNode(t *testing.T) {
	claimMembers(t, func(t *testing.T, w *world, claim func() *locks.Claim) {
		l := held(t, t.Context(), claim())
		require.Equal(t, pathMutex, l.Path())
		require.Equal(t, pathMutex, l.Node())
		n, ok := w.zk.Node(pathMutex)
		require.True(t, ok)
		require.Equal(t, l.Session(), n.Stat.EphemeralOwner)
		require.Equal(t, l.Token(), n.Stat.Czxid)
		require.Equal(t, "m", ownerIn(t, n.Data).Owner)
		dir, _ := w.zk.Node("/desks")
		require.Equal(t, zktest.Container, dir.Mode)
		refusedSoon(t, claim())
		released(t, l)
		again := held(t, t.Context(), claim())
		require.Greater(t, again.Token(), l.Token())
		released(t, again)
		w.nothingLeft(t)
	})
}

// TestOneClaimantAtATime counts them while many wait.
func TestOneClaimantAtATime(t *testing.T) {
	claimMembers(t, func(t *testing.T, w *world, claim func() *locks.Claim) {
		a := newAsker(t)
		const n = 12
		for i := range n {
			a.ask(fmt.Sprint(i), claim().Lock)
		}
		for range n {
			got := a.now()
			require.Len(t, got, 1)
			require.NoError(t, a.lease(got[0]).Err())
			require.Equal(t, []string{pathMutex}, w.claims())
			a.release(got[0])
			time.Sleep(time.Second)
		}
		require.Empty(t, a.now())
		w.nothingLeft(t)
	})
}

func TestTheEndOfAClaimantsSessionFreesTheClaim(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		a.Link.BlackHole(true, true)
		next := held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
		require.ErrorIs(t, l.Err(), framework.ErrSessionLost)
		require.Greater(t, next.Token(), l.Token())
		a.Link.Heal()
		released(t, next)
		w.nothingLeft(t)
	})
}

// TestDeletedClaimEndsItsRun in this process with the next proof of life.
func TestDeletedClaimEndsItsRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		require.NoError(t, b.Delete(t.Context(), pathMutex, framework.AnyVersion))
		<-l.Context().Done()
		require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
		released(t, held(t, t.Context(), locks.NewClaim(a.Client, pathMutex)))
		w.nothingLeft(t)
	})
}

// TestALateReleaseLeavesTheNextClaimAlone: the node of the next holder has the same name.
func TestALateReleaseLeavesTheNextClaimAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		require.NoError(t, w.zk.Expire(l.Session()))
		next := held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
		require.ErrorIs(t, l.Release(t.Context()), framework.ErrSessionLost)
		time.Sleep(2 * timeout)
		require.NoError(t, next.Err())
		require.Equal(t, []string{pathMutex}, w.claims())
	})
}

func TestALostReplyOfAClaim(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreateContainer, zktest.OpExists, zktest.OpDelete,
		zktest.OpGetData} {
		t.Run(op.String(), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				s := sessionOf(t, a)
				w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: s.ID(), Path: "/desks",
					Func: zktest.Request.Writes})
				w.zk.DropReply(1, zktest.Match{Op: op, Session: s.ID(), Path: "/"})
				c := locks.NewClaim(a.Client, pathMutex)
				l := held(t, t.Context(), c)
				n, _ := w.zk.Node(pathMutex)
				require.Equal(t, n.Stat.Czxid, l.Token())
				require.Equal(t, s.ID(), l.Session())
				refusedSoon(t, c)
				refusedSoon(t, locks.NewClaim(b.Client, pathMutex))
				released(t, l)
				released(t, held(t, t.Context(), locks.NewClaim(b.Client, pathMutex)))
				w.nothingLeft(t)
			})
		})
	}
}

// TestALostReplyOfARefusal: the node that is there is somebody else's.
func TestALostReplyOfARefusal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(a.Client, pathMutex))
		f := w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: sessionOf(t, b).ID(), Path: "/desks",
			Func: zktest.Request.Writes})
		_, err := locks.NewClaim(b.Client, pathMutex).TryLock(t.Context())
		<-f.Hit()
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.NoError(t, l.Err())
	})
}

// TestAClaimGivenUpAnywhereLeavesNoNode ends the context at many moments, with replies lost on the
// way, while the claim is free and while it is taken.
func TestAClaimGivenUpAnywhereLeavesNoNode(t *testing.T) {
	for at := range 60 {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a"), w.member("b")
			s := sessionOf(t, a)
			a.Link.Delay(7 * time.Millisecond)
			if at%2 == 1 {
				w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: s.ID(), Path: "/desks",
					Func: zktest.Request.Writes})
			}
			if at%3 == 0 {
				l := held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
				time.AfterFunc(100*time.Millisecond, func() { _ = l.Release(context.Background()) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*4*time.Millisecond)
			defer cancel()
			c := locks.NewClaim(a.Client, pathMutex)
			if l, err := c.Lock(ctx); err == nil {
				released(t, l)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			time.Sleep(timeout)
			w.nothingLeft(t)
			l, err := c.TryLock(t.Context())
			require.NoError(t, err, "at %d", at)
			require.Equal(t, s.ID(), l.Session())
		})
	}
}

// TestAClaimGivenUpIsUndoneBeforeTheNext: two goroutines of one session; the first one's create is
// on its way when it gives up, and must not be taken for the second one's.
func TestAClaimGivenUpIsUndoneBeforeTheNext(t *testing.T) {
	for delay := range 20 {
		in(t, func(t *testing.T, w *world) {
			m := w.member("a")
			m.Link.Delay(10 * time.Millisecond)
			c := locks.NewClaim(m.Client, pathMutex)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(delay)*3*time.Millisecond)
			defer cancel()
			second := newAsker(t)
			go func() {
				if l, err := c.Lock(ctx); err == nil {
					_ = l.Release(t.Context())
				}
			}()
			synctest.Wait()
			second.ask("2", c.Lock)
			time.Sleep(time.Second)
			require.Equal(t, []string{"2"}, second.now())
			time.Sleep(timeout)
			require.NoError(t, second.lease("2").Err())
			require.Equal(t, []string{pathMutex}, w.claims())
			n, _ := w.zk.Node(pathMutex)
			require.Equal(t, n.Stat.Czxid, second.lease("2").Token())
			second.release("2")
			w.nothingLeft(t)
		})
	}
}

func TestAClaimantsWaitSurvivesASessionLoss(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewClaim(b.Client, pathMutex))
		next := newAsker(t)
		next.ask("1", locks.NewClaim(a.Client, pathMutex).Lock)
		next.ask("2", locks.NewClaim(a.Client, pathMutex).Lock)
		require.NoError(t, w.zk.Expire(sessionOf(t, a).ID()))
		time.Sleep(timeout)
		require.Empty(t, next.now())
		released(t, l)
		got := next.now()
		require.Len(t, got, 1)
		require.NoError(t, next.lease(got[0]).Err())
		next.release(got...)
		next.release(next.now()...)
		w.nothingLeft(t)
	})
}

// TestAClaimsOwnContextIsRefused: the request would wait for itself.
func TestAClaimsOwnContextIsRefused(t *testing.T) {
	claimMembers(t, func(t *testing.T, w *world, claim func() *locks.Claim) {
		c := claim()
		l := held(t, t.Context(), c)
		_, err := c.Lock(l.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		_, err = c.TryLock(l.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		require.NoError(t, l.Err())
		released(t, l)
		released(t, held(t, context.WithoutCancel(l.Context()), c))
	})
}

// TestAClaimOfADirectoryIsRefused: nobody's end would make it free.
func TestAClaimOfADirectoryIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		mutex := held(t, t.Context(), locks.NewMutex(a.Client, pathMutex))
		require.NoError(t, a.Create(t.Context(), "/data", []byte("12345"), framework.Persistent))
		for path, says := range map[string]string{pathMutex: "1 children", "/data": "5 bytes"} {
			_, err := locks.NewClaim(b.Client, path).Lock(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, path)
			_, err = locks.NewClaim(b.Client, path).TryLock(t.Context())
			require.ErrorIs(t, err, locks.ErrNotAcquired)
		}
		released(t, mutex)
		w.nothingLeft(t)
	})
}

// TestALockMayBeCalledZookeeperBelowARoot: only the servers' own directory is refused.
func TestALockMayBeCalledZookeeperBelowARoot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		below := config
		below.Root = "/app"
		released(t, held(t, t.Context(), locks.NewMutex(w.zk.Member(t, "a", below).Client, "/zookeeper/a")))
		below.Root = "/zookeeper"
		_, err := locks.NewClaim(w.zk.Member(t, "b", below).Client, "/a").Lock(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		released(t, held(t, t.Context(), locks.NewMutex(w.member("c").Client, "/zookeepers")))
	})
}
