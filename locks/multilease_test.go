package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// mixture is a multi-lock of every kind there is.
func mixture(c *framework.Client, opts ...locks.Option) *locks.MultiLock {
	rw := as[locks.RWLockOption](opts)
	return locks.NewMultiLock(
		locks.NewRWLock(c, "/m/reading", rw...).RLocker(),
		locks.NewSemaphore(c, "/m/pool", 3, as[locks.SemaphoreOption](opts)...).Permits(2),
		locks.NewClaim(c, "/m/claim", as[locks.ClaimOption](opts)...),
		locks.NewMutex(c, "/m/mutex", as[locks.MutexOption](opts)...),
		locks.NewRWLock(c, "/m/writing", rw...),
	)
}

func TestAMixtureIsHeldTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		l := held(t, t.Context(), mixture(a))
		require.Len(t, w.ephemerals(), 7, "two permits and what the claim's guard checks among them")
		beside := held(t, t.Context(),
			locks.NewMultiLock(locks.NewRWLock(b, "/m/reading").RLocker(), locks.NewSemaphore(b, "/m/pool", 3)))
		for _, taken := range []locks.Locker{
			locks.NewRWLock(b, "/m/reading"), locks.NewSemaphore(b, "/m/pool", 3), locks.NewClaim(b, "/m/claim"),
			locks.NewMutex(b, "/m/mutex"),
			locks.NewRWLock(b, "/m/writing").RLocker(), mixture(b),
		} {
			refusedSoon(t, taken)
		}
		released(t, beside)
		next := newAsker(t)
		next.ask("b", mixture(b).Lock)
		require.Empty(t, next.now())
		released(t, l)
		require.Equal(t, []string{"b"}, next.now())
		require.Greater(t, next.lease("b").Token(), l.Token())
		next.release("b")
		w.nothingLeft(t)
	})
}

// TestAMixtureEndsWithEachOfItsParts deletes one node after the other.
func TestAMixtureEndsWithEachOfItsParts(t *testing.T) {
	for i := range 6 {
		in(t, func(t *testing.T, w *world) {
			a, b := w.member("a").Client, w.member("b").Client
			l := held(t, t.Context(), mixture(a))
			nodes := w.ephemerals()
			require.NoError(t, b.Delete(t.Context(), nodes[i], framework.AnyVersion))
			<-l.Context().Done()
			require.ErrorIs(t, context.Cause(l.Context()), framework.ErrNodeGone, nodes[i])
			require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
			require.Zero(t, l.Remaining())
			w.nothingLeft(t)
			for _, guard := range append(l.Guards(), l.Guard()) {
				_, err := a.Multi(t.Context(), guard, framework.CreateOp("/late", nil, framework.Persistent))
				require.ErrorIs(t, err, framework.ErrNodeGone)
			}
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

func TestAMixtureEndsWithItsSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), mixture(a.Client))
		next := newAsker(t)
		a.Link.BlackHole(true, true)
		next.ask("b", func(ctx context.Context) (*locks.Lease, error) {
			got, err := mixture(b.Client).Lock(ctx)
			require.ErrorIs(t, l.Err(), framework.ErrSessionLost, "it has ended before")
			return got, err
		})
		time.Sleep(2 * timeout)
		require.Equal(t, []string{"b"}, next.now())
		require.ErrorIs(t, context.Cause(l.Context()), framework.ErrSessionLost)
		a.Link.Heal()
		next.release("b")
		w.nothingLeft(t)
	})
}

// TestPartsOfTwoClients: a lease on both ends with either session.
func TestPartsOfTwoClients(t *testing.T) {
	for lost := range 2 {
		in(t, func(t *testing.T, w *world) {
			ms := []*locks.Mutex{locks.NewMutex(w.member("a").Client, "/m/a"),
				locks.NewMutex(w.member("b").Client, "/m/b")}
			parts := []*locks.Lease{held(t, t.Context(), ms[0]), held(t, t.Context(), ms[1])}
			session := parts[lost].Session()
			released(t, parts...)
			l := held(t, t.Context(), locks.NewMultiLock(ms[0], ms[1]))
			require.NoError(t, w.zk.Expire(session))
			<-l.Context().Done()
			require.ErrorIs(t, context.Cause(l.Context()), framework.ErrSessionLost)
			require.ErrorIs(t, l.Err(), framework.ErrSessionLost)
			w.nothingLeft(t)
		})
	}
}

// TestTheTimeLeftIsTheLeastOfAll cuts off one client of two.
func TestTheTimeLeftIsTheLeastOfAll(t *testing.T) {
	for cut := range 2 {
		in(t, func(t *testing.T, w *world) {
			ms := []*zktest.Member{w.member("a"), w.member("b")}
			l := held(t, t.Context(),
				locks.NewMultiLock(locks.NewMutex(ms[0].Client, "/m/a"), locks.NewMutex(ms[1].Client, "/m/b")))
			ms[cut].Link.BlackHole(true, true)
			time.Sleep(timeout * 6 / 10)
			least, most := sessionOf(t, ms[cut]).LeaseRemaining(), sessionOf(t, ms[1-cut]).LeaseRemaining()
			require.Less(t, least, most)
			require.Equal(t, least, l.Remaining())
			ms[cut].Link.Heal()
		})
	}
}

// TestGuardsNameEachNode: the servers refuse what one of them has lost, while it looks well here.
func TestGuardsNameEachNode(t *testing.T) {
	for i := range 6 {
		in(t, func(t *testing.T, w *world) {
			slow := w.member("a")
			slow.Link.Delay(time.Millisecond) // it does not hear at once of what happens
			a, b := slow.Client, w.member("b").Client
			l := held(t, t.Context(), mixture(a))
			write := framework.CreateOp("/guarded", nil, framework.Persistent)
			_, err := a.Multi(t.Context(), append(l.Guards(), write)...)
			require.NoError(t, err)
			require.NoError(t, b.Delete(t.Context(), w.ephemerals()[i], framework.AnyVersion))
			require.NoError(t, l.Err())
			_, err = a.Multi(t.Context(), append(l.Guards(), framework.DeleteOp("/guarded", framework.AnyVersion))...)
			require.ErrorIs(t, err, framework.ErrNoNode)
			_, there := w.zk.Node("/guarded")
			require.True(t, there)
		})
	}
}

// TestTheContextOfSeveralBelongsToEach: asking for a part with it is asking twice.
func TestTheContextOfSeveralBelongsToEach(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		type key struct{}
		c := w.member("a").Client
		l := held(t, context.WithValue(t.Context(), key{}, 7), mixture(c))
		require.Equal(t, 7, l.Context().Value(key{}))
		before := w.requests()
		for part, want := range map[locks.Locker]error{
			locks.NewMutex(c, "/m/mutex"): locks.ErrHeld, locks.NewRWLock(c, "/m/writing"): locks.ErrHeld,
			locks.NewRWLock(c, "/m/reading").RLocker(): locks.ErrHeld,
			locks.NewRWLock(c, "/m/reading"):           locks.ErrHeld,
		} {
			_, err := part.Lock(l.Context())
			require.ErrorIs(t, err, want)
			_, err = locks.NewMultiLock(part, locks.NewMutex(c, "/m/aaa")).Lock(l.Context())
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, part.Path())
		}
		nested := held(t, l.Context(), locks.NewMutex(c, "/m/mutex", locks.WithReentry()))
		require.Positive(t, w.requests()-before)
		released(t, l)
		require.ErrorIs(t, nested.Err(), locks.ErrReleased)
		w.nothingLeft(t)
	})
}

// TestTheReleaseOfAPartLeavesNoOther: whoever wrote a lock of their own and keeps its lease may end
// it.
func TestTheReleaseOfAPartLeavesNoOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		var part *locks.Lease
		keeping := custom{locks.NewMutex(c, "/m/b"), func(ctx context.Context) (l *locks.Lease, err error) {
			part, err = locks.NewMutex(c, "/m/b").Lock(ctx)
			return part, err
		}}
		l := held(t, t.Context(), locks.NewMultiLock(append(mutexes(c, "/m/a", "/m/c"), keeping)...))
		released(t, part)
		<-l.Context().Done()
		require.ErrorIs(t, l.Err(), locks.ErrReleased)
		w.nothingLeft(t)
	})
}

func TestInvalidMultiLocksAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		for want, m := range map[string]*locks.MultiLock{
			"of no locks":      locks.NewMultiLock(),
			"lock that is nil": locks.NewMultiLock(locks.NewMutex(c, "/m/a"), nil),
			"/m/a twice":       locks.NewMultiLock(mutexes(c, "/m/a", "/m/b", "/m/a")...),
			"/m/rw twice":      locks.NewMultiLock(locks.NewRWLock(c, "/m/rw"), locks.NewRWLock(c, "/m/rw").RLocker()),
			"/m/pool twice": locks.NewMultiLock(locks.NewSemaphore(c, "/m/pool", 3).Permits(1),
				locks.NewSemaphore(c, "/m/pool", 3).Permits(2)),
			"the client is nil": locks.NewMultiLock(locks.NewMutex(c, "/m/a"), locks.NewMutex(nil, "/m/b")),
		} {
			for _, ask := range []func(context.Context) (*locks.Lease, error){m.Lock, m.TryLock} {
				_, err := ask(t.Context())
				require.ErrorContains(t, err, want)
			}
			require.NotPanics(t, func() { _ = m.Path() })
		}
		w.nothingLeft(t)
	})
}

// TestAMultiLockOfOne is that one.
func TestAMultiLockOfOne(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		l := held(t, t.Context(), locks.NewMultiLock(locks.NewMutex(c, path)))
		require.Equal(t, path, l.Path())
		_, err := c.Multi(t.Context(), l.Guard(), framework.CreateOp("/guarded", nil, framework.Persistent))
		require.NoError(t, err)
		refusedSoon(t, locks.NewMutex(c, path))
		released(t, l)
	})
}
