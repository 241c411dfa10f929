package locks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// mutexes are locks at the paths given.
func mutexes(c *framework.Client, paths ...string) (ls []locks.Locker) {
	for _, p := range paths {
		ls = append(ls, locks.NewMutex(c, p))
	}
	return ls
}

// custom is a lock whose asking is done by a function.
type custom struct {
	locks.Locker
	lock func(context.Context) (*locks.Lease, error)
}

func (c custom) Lock(ctx context.Context) (*locks.Lease, error)    { return c.lock(ctx) }
func (c custom) TryLock(ctx context.Context) (*locks.Lease, error) { return c.lock(ctx) }

// changes are the paths that were created and deleted below /m, in the servers' order.
func (w *world) changes() (seen func() []string) {
	var mu sync.Mutex
	var log []string
	w.zk.Observe(func(r zktest.Request) {
		dir, _ := znode.Split(r.Path)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Err != 0 || len(dir) < 3 || dir[:3] != "/m/":
		case r.Op == zktest.OpCreate || r.Op == zktest.OpCreate2:
			log = append(log, "+"+dir)
		case r.Op == zktest.OpDelete:
			log = append(log, "-"+dir)
		}
	})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, log...)
	}
}

// TestAMultiLocksOrder asks in an order that does not depend on what was given, and releases in
// reverse.
func TestAMultiLocksOrder(t *testing.T) {
	for _, given := range [][]string{{"/m/a", "/m/b", "/m/c"}, {"/m/c", "/m/b", "/m/a"}, {"/m/b", "/m/c", "/m/a"}} {
		in(t, func(t *testing.T, w *world) {
			seen := w.changes()
			m := locks.NewMultiLock(mutexes(w.member("a").Client, given...)...)
			require.Equal(t, "/m/a,/m/b,/m/c", m.Path())
			l := held(t, t.Context(), m)
			require.Equal(t, m.Path(), l.Path())
			released(t, l)
			require.Equal(t, []string{"+/m/a", "+/m/b", "+/m/c", "-/m/c", "-/m/b", "-/m/a"}, seen())
			w.nothingLeft(t)
		})
	}
}

// TestMultiLocksDoNotDeadlock has members ask for random selections in random order.
func TestMultiLocksDoNotDeadlock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		holders := map[string]*int{"/m/a": new(int), "/m/b": new(int), "/m/c": new(int), "/m/d": new(int)}
		for i := range uint64(6) {
			r := rand.New(rand.NewPCG(i, 1))
			c := w.member("m").Client
			wg.Go(func() {
				for range 30 {
					paths := []string{"/m/a", "/m/b", "/m/c", "/m/d"}
					r.Shuffle(4, func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
					paths = paths[:2+r.IntN(3)]
					l, err := locks.NewMultiLock(mutexes(c, paths...)...).Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					for _, p := range paths {
						*holders[p]++
						require.Equal(t, 1, *holders[p], p)
					}
					time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
					for _, p := range paths {
						*holders[p]--
					}
					released(t, l)
				}
			})
		}
		wg.Wait()
		w.nothingLeft(t)
	})
}

func TestFailedMultiLockHoldsNoPart(t *testing.T) {
	foo := errors.New("foo")
	for name, bad := range map[string]func(w *world, c *framework.Client) (lock locks.Locker, want error){
		"refused by a lock of the user's": func(_ *world, c *framework.Client) (locks.Locker, error) {
			return custom{locks.NewMutex(c, "/m/b"), func(context.Context) (*locks.Lease, error) { return nil, foo }},
				foo
		},
		"mixed kinds": func(w *world, c *framework.Client) (locks.Locker, error) {
			held(w.t, w.t.Context(), locks.NewRWLock(c, "/m/b"))
			return locks.NewMutex(c, "/m/b"), framework.ErrForeign
		},
		"more permits than there are": func(_ *world, c *framework.Client) (locks.Locker, error) {
			return locks.NewSemaphore(c, "/m/b", 2).Permits(3), framework.ErrMismatch
		},
		"a bad argument": func(_ *world, c *framework.Client) (locks.Locker, error) {
			return locks.NewMutex(c, "/m/b/"), framework.ErrInvalid
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.t = t
				c := w.member("a").Client
				b, want := bad(w, c)
				left := w.ephemerals()
				m := locks.NewMultiLock(append(mutexes(c, "/m/c", "/m/a"), b)...)
				for op, ask := range map[string]func(context.Context) (*locks.Lease, error){"acquire ": m.Lock,
					"try ": m.TryLock} {
					_, err := ask(t.Context())
					require.ErrorIs(t, err, want)
					require.ErrorContains(t, err, op+m.Path())
				}
				require.Equal(t, left, w.ephemerals())
				require.Empty(t, w.zk.Children("/m/c"), "those behind it were not asked for")
			})
		})
	}
}

// TestAPanicOfOneLeavesNoneHeld, be it the user's lock or the user's function; nor does the end of
// the goroutine.
func TestAPanicOfOneLeavesNoneHeld(t *testing.T) {
	for name, bad := range map[string]func(c *framework.Client) locks.Locker{
		"a panic of a lock of the user's": func(c *framework.Client) locks.Locker {
			return custom{locks.NewMutex(c, "/m/b"), func(context.Context) (*locks.Lease, error) { panic("x") }}
		},
		"the goroutine's end": func(c *framework.Client) locks.Locker {
			return custom{locks.NewMutex(c, "/m/b"),
				func(context.Context) (*locks.Lease, error) { runtime.Goexit(); return nil, nil }}
		},
		"a panic of the queued function": func(c *framework.Client) locks.Locker {
			return locks.NewMutex(c, "/m/b", locks.WithOnWait(func(int) { panic("x") }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a").Client, w.member("b").Client
				taken := held(t, t.Context(), locks.NewMutex(b, "/m/b"))
				m := locks.NewMultiLock(append(mutexes(a, "/m/a", "/m/c"), bad(a))...)
				ended := make(chan any)
				go func() {
					defer func() { ended <- recover() }()
					_, _ = m.Lock(t.Context())
				}()
				<-ended
				time.Sleep(time.Second)
				require.Equal(t, []string{taken.Node()}, w.ephemerals())
			})
		})
	}
}

// TestMultiLocksOfMultiLocks have one order for all: a of {a, z} and b would else wait for z while
// it is held by one that waits for b.
func TestMultiLocksOfMultiLocks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		nested := locks.NewMultiLock(locks.NewMultiLock(mutexes(a, "/m/z", "/m/a")...),
			locks.NewMultiLock(mutexes(a, "/m/b")...))
		require.Equal(t, "/m/a,/m/b,/m/z", nested.Path())
		flat := locks.NewMultiLock(mutexes(b, "/m/b", "/m/z")...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		for _, m := range []*locks.MultiLock{nested, flat} {
			wg.Go(func() {
				for range 100 {
					l, err := m.Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					released(t, l)
				}
			})
		}
		wg.Wait()
		_, err := locks.NewMultiLock(nested, locks.NewMutex(a, "/m/z")).Lock(ctx)
		require.ErrorContains(t, err, "/m/z twice")
		_, err = locks.NewMultiLock(locks.NewMultiLock(), locks.NewMutex(a, "/m/z")).Lock(ctx)
		require.NoError(t, err, "an empty one adds nothing")
	})
}

func TestMultiTryLockNamesTheHeldLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		taken := held(t, t.Context(), locks.NewMutex(b, "/m/b"))
		m := locks.NewMultiLock(mutexes(a, "/m/c", "/m/b", "/m/a")...)
		_, err := m.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.ErrorContains(t, err, "try /m/b:")
		require.Equal(t, []string{taken.Node()}, w.ephemerals())
		released(t, taken)
		l, err := m.TryLock(t.Context())
		require.NoError(t, err)
		require.Len(t, w.ephemerals(), 3)
		released(t, l)
		w.nothingLeft(t)
	})
}

// TestOneDeadlineForAll: the second wait has what the first has left, and what was held is given
// back at the deadline.
func TestOneDeadlineForAll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		first, second := held(t, t.Context(), locks.NewMutex(b, "/m/a")),
			held(t, t.Context(), locks.NewMutex(b, "/m/b"))
		time.AfterFunc(6*time.Second, func() { _ = first.Release(context.Background()) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		_, err := locks.NewMultiLock(mutexes(a, "/m/a", "/m/b")...).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "acquire /m/a,/m/b:")
		require.Equal(t, 10*time.Second, time.Since(began).Round(time.Second))
		time.Sleep(time.Second)
		require.Equal(t, []string{second.Node()}, w.ephemerals())
	})
}

// TestASessionLostInTheMiddleBeginsAgain loses it while the first lock is held and the second
// waited for.
func TestASessionLostInTheMiddleBeginsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		taken := held(t, t.Context(), locks.NewMutex(b.Client, "/m/b"))
		got := newAsker(t)
		got.ask("multi", locks.NewMultiLock(mutexes(a.Client, "/m/a", "/m/b")...).Lock)
		former := sessionOf(t, a).ID()
		require.NoError(t, w.zk.Expire(former))
		time.Sleep(timeout)
		require.Len(t, w.zk.Children("/m/a"), 1)
		require.Empty(t, got.now())
		released(t, taken)
		require.Equal(t, []string{"multi"}, got.now())
		l := got.lease("multi")
		require.NoError(t, l.Err())
		require.NotEqual(t, former, l.Session())
		for _, n := range w.zk.Tree("/m") {
			require.Contains(t, []framework.SessionID{0, l.Session()}, n.Stat.EphemeralOwner)
		}
		got.release("multi")
		w.nothingLeft(t)
	})
}

// TestMultiPausesWhenPartIsLostRepeatedly has a first lock whose lease ends as soon as it is
// granted. It counts the tries of a minute.
func TestMultiPausesWhenPartIsLostRepeatedly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		first, tries := locks.NewMutex(c, "/m/a"), 0
		lost := custom{first, func(ctx context.Context) (*locks.Lease, error) {
			if tries++; tries > 1000 {
				return nil, errors.New("it asks without a pause")
			}
			lease, err := first.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return lease, lease.Release(ctx)
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := locks.NewMultiLock(lost, locks.NewMutex(c, "/m/b")).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		require.Greater(t, tries, 5)
		require.Less(t, tries, 50)
		w.nothingLeft(t)
	})
}

// TestALockLostWhileOthersAreWaitedForBeginsAgain loses the first lock alone.
func TestALockLostWhileOthersAreWaitedForBeginsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		taken := held(t, t.Context(), locks.NewMutex(b.Client, "/m/b"))
		got := newAsker(t)
		got.ask("multi", locks.NewMultiLock(mutexes(a.Client, "/m/a", "/m/b")...).Lock)
		lost := w.zk.Children("/m/a")
		require.NoError(t, b.Delete(t.Context(), "/m/a/"+lost[0], framework.AnyVersion))
		time.Sleep(timeout)
		require.Len(t, w.zk.Children("/m/a"), 1)
		require.NotEqual(t, lost, w.zk.Children("/m/a"))
		released(t, taken)
		require.Equal(t, []string{"multi"}, got.now())
		got.release("multi")
		w.nothingLeft(t)
	})
}
