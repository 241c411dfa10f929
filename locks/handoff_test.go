package locks_test

import (
	"context"
	"runtime"
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
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Second))
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
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Second))
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
		m := locks.NewMutex(me.Client, path, locks.WithLocalHandoff(time.Minute))
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
		require.ErrorIs(t, a.lease("1").Release(t.Context()), framework.ErrSessionLost)
		a.release("2")
		require.Empty(t, w.zk.Children(path))
	})
}

func TestTurnsExcludeEachOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		inside, n := 0, 0
		for _, name := range []string{"a", "b"} {
			m := locks.NewMutex(w.member(name).Client, path, locks.WithLocalHandoff(20*time.Millisecond))
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
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Second))
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

func TestLocalHandoffNeedsATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, err := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(0)).Lock(t.Context())
		require.ErrorContains(t, err, "WithLocalHandoff: 0s")
	})
}

// TestSliceIsNotPassedToCancelledWaiter: a turn ends at the instant at which the one that waits for
// it gives up. The node's lease was once left to nobody then, for ever.
func TestSliceIsNotPassedToCancelledWaiter(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mutex := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Hour))
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

// TestSliceTurnOnEndedNodeDoesNotBlockOthers: the node's lease ends at the instant at which a turn
// begins, whose holder never releases it.
func TestSliceTurnOnEndedNodeDoesNotBlockOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Hour),
			locks.WithMaxHold(time.Second))
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

// TestASliceKeepsItsPlaceInTheLine, whoever of its goroutines gives up, for as long as one of them
// waits.
func TestASliceKeepsItsPlaceInTheLine(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		holder := lock(t, w.member("holder").Client)
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Second))
		a := newAsker(t)
		ctx, giveUp := context.WithCancel(t.Context())
		a.ask("opener", func(context.Context) (*locks.Lease, error) { return m.Lock(ctx) })
		a.ask("early", m.Lock)
		a.ask("late", locks.NewMutex(w.member("b").Client, path).Lock)
		giveUp()
		require.Len(t, a.now(), 1, "the opener's error")
		released(t, holder)
		require.Equal(t, []string{"early"}, a.now())
		require.Equal(t, int64(1), a.lease("early").Turn())
		a.release("early")
		require.Equal(t, []string{"late"}, a.now())
		a.release("late")
		w.nothingLeft(t)
	})
}

// TestSliceWithoutWaitersLeavesTheLine, also when others come as it does.
func TestSliceWithoutWaitersLeavesTheLine(t *testing.T) {
	for _, times := range []struct{ delay, pause time.Duration }{{0, 0}, {time.Millisecond, 0}, {0, time.Second}} {
		in(t, func(t *testing.T, w *world) {
			holder := lock(t, w.member("holder").Client)
			me := w.member("a")
			me.Link.Delay(times.delay)
			m := locks.NewMutex(me.Client, path, locks.WithLocalHandoff(time.Second))
			ctx, giveUp := context.WithCancel(t.Context())
			a := newAsker(t)
			for range 3 {
				a.ask("gave up", func(context.Context) (*locks.Lease, error) { return m.Lock(ctx) })
			}
			time.Sleep(time.Second)
			giveUp()
			require.Len(t, a.now(), 3)
			if times.pause > 0 {
				time.Sleep(times.pause)
				require.Len(t, w.zk.Children(path), 1, "nobody waits")
			}
			a.ask("next", m.Lock)
			time.Sleep(time.Second)
			require.Len(t, w.zk.Children(path), 2)
			released(t, holder)
			time.Sleep(time.Second)
			require.Equal(t, []string{"next"}, a.now())
			a.release("next")
			w.nothingLeft(t)
		})
	}
}

// TestSliceWaiterGetsTheReason: all who wait, and who comes later asks again.
func TestSliceWaiterGetsTheReason(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		me, other := w.member("a"), w.member("b")
		holder := held(t, t.Context(), locks.NewMutex(other.Client, path))
		m := locks.NewMutex(me.Client, path, locks.WithLocalHandoff(time.Second))
		a := newAsker(t)
		for _, name := range []string{"1", "2", "3"} {
			a.ask(name, m.Lock)
		}
		require.NoError(t, me.Close(t.Context()))
		for _, said := range a.now() {
			require.Contains(t, said, framework.ErrClosed.Error())
		}
		_, err := m.Lock(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = m.TryLock(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		released(t, holder)
	})
}

// TestAPanicOfASlicesQueuedFunctionReachesTheFirst, and the next one asks again.
func TestAPanicOfASlicesQueuedFunctionReachesTheFirst(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				holder := lock(t, w.member("holder").Client)
				asks := 0
				m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Second),
					locks.WithOnWait(func(int) {
						time.Sleep(time.Second)
						if asks++; asks == 1 {
							fail()
						}
					}))
				ended := make(chan any)
				go func() {
					defer func() { ended <- recover() }()
					_, _ = m.Lock(t.Context())
					t.Error("it goes on")
				}()
				synctest.Wait()
				a := newAsker(t)
				a.ask("second", m.Lock)
				if got := <-ended; name == "panic" {
					require.Equal(t, "boom", got)
				}
				released(t, holder)
				time.Sleep(2 * time.Second)
				require.Equal(t, []string{"second"}, a.now())
				a.release("second")
				w.nothingLeft(t)
			})
		})
	}
}

// TestATryAmidASlice takes the turn only if nobody has it, waits for it or asks for the node.
func TestATryAmidASlice(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		me := w.member("a")
		m := locks.NewMutex(me.Client, path, locks.WithLocalHandoff(time.Second))
		a := newAsker(t)
		me.Link.Delay(100 * time.Millisecond)
		a.ask("try", m.TryLock)
		_, err := m.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired, "another tries")
		a.ask("waits", m.Lock)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"try"}, a.now())
		a.release("try")
		require.Equal(t, []string{"waits"}, a.now(), "in the same slice")
		require.Equal(t, int64(2), a.lease("waits").Turn())
		a.release("waits")
		time.Sleep(2 * time.Second)
		holder := held(t, t.Context(), locks.NewMutex(w.member("b").Client, path))
		a.ask("fails", m.TryLock)
		a.ask("then", m.Lock)
		time.Sleep(2 * time.Second)
		require.Len(t, a.now(), 1)
		released(t, holder)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"then"}, a.now(), "a try that failed has its place asked for again")
		a.release("then")
		time.Sleep(2 * time.Second)
		w.nothingLeft(t)
	})
}
