package locks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestGoroutinesTakeTurnsWithOneNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalSlice(time.Second))
		a := newAsker(t)
		for _, name := range []string{"1", "2", "3"} {
			a.ask(name, m.Lock)
		}
		require.Equal(t, []string{"1"}, a.now())
		creates := w.zk.Requests()[zktest.OpCreate]
		a.release("1")
		require.Equal(t, []string{"2"}, a.now())
		a.release("2")
		require.Equal(t, []string{"3"}, a.now())
		require.Equal(t, creates, w.zk.Requests()[zktest.OpCreate])
		l1, l2, l3 := a.lease("1"), a.lease("2"), a.lease("3")
		require.Equal(t, l1.Token(), l3.Token())
		require.Equal(t, []int64{1, 2, 3}, []int64{l1.Turn(), l2.Turn(), l3.Turn()})
		require.ErrorIs(t, l2.Err(), locks.ErrReleased)
		require.ErrorIs(t, context.Cause(l2.Context()), locks.ErrReleased)
		require.NoError(t, l3.Err())
		require.NoError(t, l3.Context().Err())
		a.release("3")
		require.Empty(t, w.zk.Children(path), "nobody waits here any more")
	})
}

func TestASliceEndsInTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalSlice(time.Second))
		a := newAsker(t)
		a.ask("here 1", m.Lock)
		a.ask("there", locks.NewMutex(w.member("b").Client, path).Lock)
		a.ask("here 2", m.Lock)
		require.Equal(t, []string{"here 1"}, a.now())
		time.Sleep(2 * time.Second)
		a.release("here 1")
		require.Equal(t, []string{"there"}, a.now())
		a.release("there")
		require.Equal(t, []string{"here 2"}, a.now())
		require.Greater(t, a.lease("here 2").Token(), a.lease("there").Token())
		require.EqualValues(t, 1, a.lease("here 2").Turn())
		a.release("here 2")
	})
}

func TestALostSliceEndsItsTurn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		me := w.member("a")
		m := locks.NewMutex(me.Client, path, locks.WithLocalSlice(time.Minute))
		a := newAsker(t)
		a.ask("1", m.Lock)
		a.ask("2", m.Lock)
		require.Equal(t, []string{"1"}, a.now())
		ctx := a.lease("1").Context()
		require.NoError(t, w.zk.Expire(sessionOf(t, me).ID()))
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), framework.ErrSessionLost)
		require.ErrorIs(t, a.lease("1").Err(), framework.ErrSessionLost)
		time.Sleep(timeout)
		require.Equal(t, []string{"2"}, a.now(), "without a release of the turn that was lost")
		require.NoError(t, a.lease("2").Err())
		a.release("1", "2")
		require.Empty(t, w.zk.Children(path))
	})
}

func TestTurnsExcludeEachOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		inside, n := 0, 0
		for _, name := range []string{"a", "b"} {
			m := locks.NewMutex(w.member(name).Client, path, locks.WithLocalSlice(20*time.Millisecond))
			for range 16 {
				wg.Go(func() {
					for range 20 {
						l, err := m.Lock(t.Context())
						require.NoError(t, err)
						inside++
						require.Equal(t, 1, inside)
						time.Sleep(time.Millisecond)
						inside--
						n++
						require.NoError(t, l.Release(t.Context()))
					}
				})
			}
		}
		wg.Wait()
		require.Equal(t, 2*16*20, n)
		synctest.Wait()
		require.Empty(t, w.zk.Children(path))
	})
}

func TestATurnIsGivenUpWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalSlice(time.Second))
		l, err := m.Lock(t.Context())
		require.NoError(t, err)
		_, err = m.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = m.Lock(l.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		require.NoError(t, l.Release(t.Context()))
		l, err = m.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	})
}

func TestSlicesAreForMutexes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c, slice := w.member("a").Client, locks.WithLocalSlice(time.Second)
		for _, l := range []locks.Locker{
			locks.NewRWLock(c, path, slice), locks.NewSemaphore(c, path, 1, slice), locks.NewClaim(c, path, slice),
		} {
			_, err := l.Lock(t.Context())
			require.ErrorContains(t, err, "WithLocalSlice is for mutexes")
		}
		_, err := locks.NewMutex(c, path, locks.WithLocalSlice(0)).Lock(t.Context())
		require.ErrorContains(t, err, "WithLocalSlice: 0s")
	})
}

// TestASliceIsNotLeftToWhoGivesUp: a turn ends at the instant at which the one that waits for it gives up. The node's lease
// was once left to nobody then, for ever.
func TestASliceIsNotLeftToWhoGivesUp(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mutex := locks.NewMutex(w.member("a").Client, path, locks.WithLocalSlice(time.Hour))
		other := locks.NewMutex(w.member("b").Client, path)
		for range 1000 {
			first := held(t, t.Context(), mutex)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			var wg sync.WaitGroup
			wg.Go(func() {
				if second, err := mutex.Lock(ctx); err == nil {
					released(t, second)
				}
			})
			time.Sleep(time.Millisecond)
			released(t, first)
			wg.Wait()
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			released(t, held(t, ctx, other))
			cancel()
		}
	})
}

// TestATurnThatBeginsAsItsNodeEndsHoldsUpNobody: the node's lease ends at the instant at which a turn begins, whose holder
// never releases it.
func TestATurnThatBeginsAsItsNodeEndsHoldsUpNobody(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalSlice(time.Hour), locks.WithMaxHold(time.Second))
		for i := range 3000 {
			first := held(t, t.Context(), m)
			done := make(chan struct{})
			go func() { // keeps the slice
				defer close(done)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, _ = m.Lock(ctx) // forgotten
			}()
			synctest.Wait()
			at := time.AfterFunc(time.Second, func() { _ = first.Release(t.Context()) })
			_ = at
			<-done
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			third, err := m.Lock(ctx)
			cancel()
			require.NoError(t, err, "try %d", i)
			released(t, third)
		}
	})
}
