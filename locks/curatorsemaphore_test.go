package locks_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// These are counterparts of tests that Apache Curator has of its semaphore; docs/curator.md names
// them.

// gauge counts how many permits are held.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

// TestRandomNumbersOfPermits: ten members take random numbers of permits at once. Never are more
// held than there are, and no two members hold parts of what they need, which would end everything.
func TestRandomNumbersOfPermits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const members, rounds, permits = 10, 40, 30
		var g gauge
		var all sync.WaitGroup
		for i := range members {
			s, r := locks.NewSemaphore(w.member("m").Client, pool, permits), rand.New(rand.NewPCG(uint64(i), 6))
			all.Go(func() {
				for range rounds {
					n := 1 + r.IntN(permits)
					l, err := s.Acquire(t.Context(), n)
					require.NoError(t, err)
					g.add(n)
					time.Sleep(time.Duration(r.IntN(25)) * time.Millisecond)
					g.add(-n)
					released(t, l)
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, g.most, permits)
		require.Greater(t, g.most, permits/2)
		w.nothingLeft(t)
	})
}

// TestAsManyHoldAsThereArePermits at once, and every member is served, also when it shares its
// client or its semaphore with others.
func TestAsManyHoldAsThereArePermits(t *testing.T) {
	semMembers(t, 5, func(t *testing.T, w *world, sem func() *locks.Semaphore) {
		var g gauge
		var all sync.WaitGroup
		shared := sem()
		for i := range 20 {
			s := shared
			if i%2 == 0 {
				s = sem()
			}
			all.Go(func() {
				l := held(t, t.Context(), s)
				g.add(1)
				time.Sleep(time.Second)
				g.add(-1)
				released(t, l)
			})
		}
		all.Wait()
		require.Equal(t, 5, g.most)
		w.nothingLeft(t)
	})
}

// TestPermitsReleasedInChunks: a hundred goroutines of one client, eleven permits, given back some
// at a time.
func TestPermitsReleasedInChunks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const goroutines, permits = 100, 11
		c, r := w.member("m").Client, rand.New(rand.NewPCG(7, 7))
		var g gauge
		var all sync.WaitGroup
		step := make(chan struct{}, goroutines)
		for range goroutines {
			all.Go(func() {
				l := held(t, t.Context(), locks.NewSemaphore(c, pool, permits))
				g.add(1)
				<-step
				g.add(-1)
				released(t, l)
			})
		}
		for left := goroutines; left > 0; time.Sleep(time.Duration(1+r.IntN(100)) * time.Millisecond) {
			for range min(left, 1+r.IntN(5)) {
				step <- struct{}{}
				left--
			}
		}
		all.Wait()
		require.Equal(t, permits, g.most)
		w.nothingLeft(t)
	})
}

// TestPermitsAfterALongOutage: ten goroutines of one client pass a permit around; the server is
// away for longer than their session lives. None has the permit meanwhile, and all go on
// afterwards.
func TestPermitsAfterALongOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const goroutines = 10
		m := w.member("m")
		var g gauge
		var mu sync.Mutex
		granted := make([]int, goroutines)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range goroutines {
			s := locks.NewSemaphore(m.Client, pool, 1)
			all.Go(func() {
				for {
					l, err := s.Lock(ctx)
					if err != nil {
						require.ErrorIs(t, err, context.Canceled)
						return
					}
					mu.Lock()
					granted[i]++
					mu.Unlock()
					g.add(1)
					time.Sleep(10 * time.Millisecond)
					g.add(-1)
					_ = l.Release(ctx)
				}
			})
		}
		served := func() (min int, sum int) {
			mu.Lock()
			defer mu.Unlock()
			min = granted[0]
			for _, n := range granted {
				if n < min {
					min = n
				}
				sum += n
			}
			return min, sum
		}
		time.Sleep(time.Second)
		before, _ := served()
		require.Positive(t, before)
		m.Link.Cut()
		synctest.Wait()
		_, stalled := served()
		time.Sleep(4 * timeout)
		_, still := served()
		require.Equal(t, stalled, still, "a permit without a server")
		require.Empty(t, w.ephemerals())
		m.Link.Heal()
		time.Sleep(timeout)
		after, _ := served()
		require.Greater(t, after, before+1)
		cancel()
		all.Wait()
		require.Equal(t, 1, g.most)
		w.nothingLeft(t)
	})
}

// TestAClosedClientsPermitsAreFree at once.
func TestAClosedClientsPermitsAreFree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewSemaphore(a.Client, pool, 1))
		waiter := newAsker(t)
		waiter.ask("b", locks.NewSemaphore(b.Client, pool, 1).Lock)
		require.Empty(t, waiter.now())
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, l.Err(), framework.ErrClosed)
		require.Equal(t, []string{"b"}, waiter.now())
		waiter.release("b")
		w.nothingLeft(t)
	})
}

// TestPermitWaiterWithDeletedNode queues again.
func TestPermitWaiterWithDeletedNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		s := locks.NewSemaphore(c, pool, 1)
		first := held(t, t.Context(), s)
		waiters := newAsker(t)
		waiters.ask("second", s.Lock)
		waiters.ask("third", locks.NewSemaphore(w.member("n").Client, pool, 1).Lock)
		for _, name := range w.zk.Children(pool + "/locks") {
			require.NoError(t, c.Delete(t.Context(), pool+"/locks/"+name, framework.AnyVersion))
		}
		synctest.Wait()
		require.Empty(t, waiters.now())
		released(t, first)
		time.Sleep(time.Second)
		granted := waiters.now()
		require.Len(t, granted, 1, "one permit")
		waiters.release(granted...)
		time.Sleep(time.Second)
		waiters.release(waiters.now()...)
		require.Len(t, waiters.leases, 2)
		w.nothingLeft(t)
		released(t, held(t, t.Context(), s))
	})
}

// TestWaiterPausesWhenItsNodeIsDeletedRepeatedly, longer each time.
func TestWaiterPausesWhenItsNodeIsDeletedRepeatedly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, operator := w.member("m"), w.member("operator")
		released(t, held(t, t.Context(), locks.NewSemaphore(m.Client, pool, 1)))
		m.Link.Delay(20 * time.Millisecond)
		a := newAsker(t)
		a.ask("m", locks.NewSemaphore(m.Client, pool, 1).Lock)
		var at []time.Time
		for len(at) < 15 {
			time.Sleep(time.Millisecond)
			for _, name := range w.zk.Children(pool + "/locks") {
				require.NoError(t, operator.Delete(t.Context(), pool+"/locks/"+name, framework.AnyVersion))
				at = append(at, time.Now())
			}
		}
		require.Less(t, at[1].Sub(at[0]), time.Second)
		require.Greater(t, at[14].Sub(at[13]), framework.Config{}.WithDefaults().RetryMax/2)
		time.Sleep(2 * framework.Config{}.WithDefaults().RetryMax)
		require.Equal(t, []string{"m"}, a.now())
		a.release("m")
	})
}
