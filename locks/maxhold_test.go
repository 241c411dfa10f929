package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

func TestForgottenLeaseEnds(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		began := time.Now()
		l := held(t, t.Context(), kind.make(w.member("a").Client, locks.WithMaxHold(time.Minute)))
		next := newAsker(t)
		next.ask("next", kind.make(w.member("b").Client).Lock)
		var ended time.Time
		context.AfterFunc(l.Context(), func() { ended = time.Now() })
		time.Sleep(59 * time.Second)
		require.NoError(t, l.Err())
		require.Empty(t, next.now())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"next"}, next.now())
		require.ErrorIs(t, context.Cause(l.Context()), locks.ErrMaxHold)
		require.Equal(t, time.Minute, ended.Sub(began).Round(time.Second))
		require.Zero(t, l.Remaining())
		require.NoError(t, l.Release(t.Context()))
		next.release("next")
		w.nothingLeft(t)
	})
}

// TestEndOfForgottenLeaseIsLogged asks the lease itself.
func TestEndOfForgottenLeaseIsLogged(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		c := w.member("a").Client
		l := held(t, t.Context(), kind.make(c, locks.WithMaxHold(time.Minute)))
		time.Sleep(2 * time.Minute)
		require.ErrorIs(t, l.Err(), locks.ErrMaxHold)
		require.NoError(t, l.Release(t.Context()))
		require.ErrorIs(t, l.Err(), locks.ErrMaxHold, "the first end counts")
		_, err := c.Multi(t.Context(), l.Guard(), framework.CreateOp("/late", nil, framework.Persistent))
		require.ErrorIs(t, err, locks.ErrMaxHold)
	})
}

// TestTheNextHolderOfTheSameClientNeedNotWaitForTheRelease: nobody releases the first lease at all.
func TestTheNextHolderOfTheSameClientNeedNotWaitForTheRelease(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		c := w.member("a").Client
		a := newAsker(t)
		for _, name := range []string{"1", "2", "3"} {
			a.ask(name, kind.make(c, locks.WithMaxHold(time.Minute)).Lock)
		}
		for range 3 {
			require.Len(t, a.now(), 1)
			time.Sleep(time.Minute + time.Second)
		}
		require.Empty(t, a.now())
		w.nothingLeft(t)
	})
}

func TestAReleasedHoldIsNotEndedAgain(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		l := kind.make(w.member("a").Client, locks.WithMaxHold(time.Minute))
		first := held(t, t.Context(), l)
		released(t, first)
		second := held(t, t.Context(), l)
		time.Sleep(59 * time.Second)
		require.ErrorIs(t, first.Err(), locks.ErrReleased)
		require.NoError(t, second.Err())
		released(t, second)
		time.Sleep(time.Minute)
		require.ErrorIs(t, first.Err(), locks.ErrReleased)
		require.ErrorIs(t, second.Err(), locks.ErrReleased)
	})
}

func TestANestedHoldHasItsOwnEnd(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		c := w.member("a").Client
		outer := held(t, t.Context(), kind.make(c, locks.WithReentry()))
		nested := held(t, outer.Context(), kind.make(c, locks.WithReentry(), locks.WithMaxHold(time.Minute)))
		time.Sleep(2 * time.Minute)
		require.ErrorIs(t, nested.Err(), locks.ErrMaxHold)
		require.ErrorIs(t, context.Cause(nested.Context()), locks.ErrMaxHold)
		require.NoError(t, outer.Err())
		released(t, outer)
	})
}

func TestANestedHoldEndsWithAForgottenOuter(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		c := w.member("a").Client
		outer := held(t, t.Context(), kind.make(c, locks.WithMaxHold(time.Minute)))
		nested := held(t, outer.Context(), kind.make(c, locks.WithReentry(), locks.WithMaxHold(time.Hour)))
		<-nested.Context().Done()
		require.ErrorIs(t, nested.Err(), locks.ErrMaxHold)
		require.ErrorIs(t, outer.Err(), locks.ErrMaxHold)
		w.nothingLeft(t)
	})
}

func TestForgottenReaderLetsWriterIn(t *testing.T) {
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		m := w.member("bounded")
		bounded := locks.NewRWLock(m.Client, path, locks.WithMaxHold(time.Minute))
		r := held(t, t.Context(), bounded.RLocker())
		a := newAsker(t)
		a.ask("w", lock().Lock)
		a.ask("r", lock().RLock)
		require.Empty(t, a.now())
		time.Sleep(time.Minute + time.Second)
		require.Equal(t, []string{"w"}, a.now())
		require.ErrorIs(t, r.Err(), locks.ErrMaxHold)
		a.release("w")
		require.Equal(t, []string{"r"}, a.now())
		a.release("r")
	})
}

func TestForgottenPermitsAreReleasedTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := locks.NewSemaphore(w.member("a").Client, pool, 3, locks.WithMaxHold(time.Minute))
		l, err := s.Acquire(t.Context(), 2)
		require.NoError(t, err)
		one := held(t, t.Context(), s)
		a := newAsker(t)
		a.ask("all", permitLocker(locks.NewSemaphore(w.member("b").Client, pool, 3), 3))
		time.Sleep(59 * time.Second)
		released(t, one)
		require.Empty(t, a.now())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"all"}, a.now())
		require.ErrorIs(t, l.Err(), locks.ErrMaxHold)
		a.release("all")
	})
}

// TestAForgottenHoldEndsWhileCutOff: the context ends in time without the servers, the node when
// they can be reached again.
func TestAForgottenHoldEndsWhileCutOff(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewMutex(a.Client, path, locks.WithMaxHold(time.Second)))
		a.Link.Cut()
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(l.Context()), locks.ErrMaxHold)
		require.Len(t, w.zk.Children(path), 1)
		a.Link.Heal()
		began := time.Now()
		lock(t, b.Client)
		require.Less(t, time.Since(began), timeout/2, "not by the session's end")
	})
}

func TestMaxHoldMustBePositive(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		for _, d := range []time.Duration{0, -time.Second} {
			_, err := kind.make(w.member("a").Client, locks.WithMaxHold(d)).Lock(t.Context())
			require.ErrorContains(t, err, "WithMaxHold: "+d.String())
		}
		require.Empty(t, w.ephemerals())
	})
}

// TestTheTimeLeftKnowsTheGreatestHold of the lease itself and of what it lies within or is made of.
func TestTheTimeLeftKnowsTheGreatestHold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		short := locks.NewMutex(c, path, locks.WithMaxHold(time.Second), locks.WithReentry())
		outer := held(t, t.Context(), short)
		time.Sleep(time.Second / 4)
		nested := held(t, outer.Context(), short)
		require.Equal(t, 3*time.Second/4, outer.Remaining())
		require.Equal(t, 3*time.Second/4, nested.Remaining())
		released(t, nested, outer)
		several := held(t, t.Context(), locks.NewMultiLock(locks.NewMutex(c, "/x"), short))
		require.Equal(t, time.Second, several.Remaining())
		time.Sleep(time.Second + 1)
		require.Zero(t, several.Remaining())
		require.ErrorIs(t, several.Err(), locks.ErrMaxHold)
	})
}

// TestMaxHoldOfPartStartsWithMulti: a multi-lock that waits for longer than that keeps what it has.
func TestMaxHoldOfPartStartsWithMulti(t *testing.T) {
	for name, opts := range map[string][]locks.MutexOption{"mutex": nil, "slice": {locks.WithLocalHandoff(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				c := w.member("a").Client
				last := held(t, t.Context(), locks.NewMutex(w.member("b").Client, "/m/b"))
				first := locks.NewMutex(c, "/m/a", append(opts, locks.WithMaxHold(time.Minute))...)
				a := newAsker(t)
				a.ask("several", locks.NewMultiLock(first, locks.NewMutex(c, "/m/b")).Lock)
				node := w.zk.Children("/m/a")
				time.Sleep(time.Hour)
				require.Equal(t, node, w.zk.Children("/m/a"))
				released(t, last)
				require.Equal(t, []string{"several"}, a.now())
				require.LessOrEqual(t, a.lease("several").Remaining(), time.Minute)
				time.Sleep(time.Minute + 1)
				require.ErrorIs(t, a.lease("several").Err(), locks.ErrMaxHold)
				w.nothingLeft(t)
			})
		})
	}
}

// TestMaxHoldOfPartOutlivesFailedMulti: a locker of the user's own keeps what it has asked for with
// the context of a multi-lock that fails.
func TestMaxHoldOfPartOutlivesFailedMulti(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		var kept *locks.Lease
		_, err := locks.NewMultiLock(custom{locks.NewMutex(c, "/m/a"), func(ctx context.Context) (*locks.Lease, error) {
			kept = held(t, ctx, locks.NewMutex(c, "/m/a", locks.WithMaxHold(time.Minute)))
			return nil, errFoo
		}}).Lock(t.Context())
		require.ErrorIs(t, err, errFoo)
		time.Sleep(time.Minute - 1)
		require.NoError(t, kept.Err())
		time.Sleep(2 * time.Nanosecond)
		require.ErrorIs(t, kept.Err(), locks.ErrMaxHold)
	})
}
