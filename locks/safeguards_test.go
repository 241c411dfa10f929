package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTheFormerContextIsDoneAtTheGrant, also of a neighbour of the same session, which is told in
// memory. With -short it has fewer tries.
func TestTheFormerContextIsDoneAtTheGrant(t *testing.T) {
	tries := 20_000
	if testing.Short() {
		tries = 5_000
	}
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithMaxHold(time.Second))
		for range tries { // the goroutine of the next one must run in a moment that is short
			former := held(t, t.Context(), m)
			done := make(chan bool)
			go func() {
				next, err := m.Lock(t.Context())
				select {
				case <-former.Context().Done():
					done <- err == nil
				default:
					done <- false
				}
				_ = next.Release(t.Context())
			}()
			require.True(t, <-done)
		}
	})
}

// TestANeighbourWaitsUntilTheDeletionIsOnItsWay: without a connection it is not.
func TestANeighbourWaitsUntilTheDeletionIsOnItsWay(t *testing.T) {
	for name, firstGivesUp := range map[string]bool{"release": false, "a waiter gives up before": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				me := w.member("a")
				m := locks.NewMutex(me.Client, path)
				q := w.stand(t, 2, func(int) locks.Locker { return m })
				me.Link.Cut()
				time.Sleep(timeout / 20)
				if firstGivesUp {
					q.giveUp["000"]()
					require.Len(t, q.now(), 1, "its error")
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				require.ErrorIs(t, q.holder.Release(ended), framework.ErrUnconfirmed)
				require.Empty(t, q.now())
				me.Link.Heal()
				time.Sleep(timeout / 2)
				granted := q.now()
				require.Len(t, granted, 1)
				q.release(granted...)
			})
		})
	}
}

// TestWaiterWithDeletedNodeIsNotGranted: it queues again behind who came later.
func TestWaiterWithDeletedNodeIsNotGranted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h := w.member("h")
		holder := lock(t, h.Client)
		ahead, leave := context.WithCancel(t.Context())
		a := newAsker(t)
		a.ask("ahead", func(context.Context) (*locks.Lease, error) {
			return locks.NewMutex(w.member("ahead").Client, path).Lock(ahead)
		})
		before := map[string]bool{}
		for _, name := range w.zk.Children(path) {
			before[name] = true
		}
		a.ask("deleted", locks.NewMutex(w.member("deleted").Client, path).Lock)
		for _, name := range w.zk.Children(path) {
			if !before[name] {
				require.NoError(t, h.Delete(t.Context(), path+"/"+name, framework.AnyVersion))
			}
		}
		a.ask("later", locks.NewMutex(w.member("later").Client, path).Lock)
		leave() // now the others look
		require.Len(t, a.now(), 1)
		time.Sleep(timeout)
		released(t, holder)
		time.Sleep(time.Second)
		require.Equal(t, []string{"later"}, a.now())
		a.release("later")
		require.Equal(t, []string{"deleted"}, a.now())
		a.release("deleted")
	})
}

// TestWriterWithDeletedNodeIsNotDowngraded beside the next writer.
func TestWriterWithDeletedNodeIsNotDowngraded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := locks.NewRWLock(a.Client, path)
		writer := held(t, t.Context(), l)
		require.NoError(t, b.Delete(t.Context(), writer.Node(), framework.AnyVersion))
		next := held(t, t.Context(), locks.NewRWLock(b.Client, path))
		_, err := l.RLock(writer.Context())
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.NoError(t, next.Err())
	})
}

// TestNextNumberAloneIsNotUncontended: the directory was removed meanwhile, and another client
// holds in the new one.
func TestNextNumberAloneIsNotUncontended(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		other := w.member("other")
		m := locks.NewMutex(w.member("a").Client, path)
		for range 3 {
			released(t, held(t, t.Context(), m))
		}
		w.zk.Reap()
		released(t, lock(t, other.Client))
		require.NoError(t, w.zk.Number(path, 2))
		lock(t, other.Client)
		refusedSoon(t, m)
	})
}

// TestReleasedReaderIsNotUncontended: what it leaves proves nothing to the writer of its session
// behind it.
func TestReleasedReaderIsNotUncontended(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		l := locks.NewRWLock(w.member("a").Client, path)
		far := held(t, t.Context(), locks.NewRWLock(w.member("b").Client, path).RLocker())
		released(t, held(t, t.Context(), l.RLocker()))
		near := held(t, t.Context(), l.RLocker())
		a := newAsker(t)
		a.ask("writer", l.Lock)
		released(t, near)
		require.Empty(t, a.now())
		released(t, far)
		require.Equal(t, []string{"writer"}, a.now())
		a.release("writer")
	})
}

// isClaim matches the transaction that creates a claim.
func isClaim(r zktest.Request) bool {
	return r.Op == zktest.OpMulti && len(r.Parts) > 0 && r.Parts[0].Op == zktest.OpCreate
}

// TestTheNextClaimOfASessionIsItsOwn: its reply is lost while the former node is on its way out, or
// while a create is under way whose asker has given up. A node that the session owns must not be
// taken for it.
func TestTheNextClaimOfASessionIsItsOwn(t *testing.T) {
	for name, former := range map[string]func(t *testing.T, ctx context.Context, c *locks.Claim) int64{
		"released": func(t *testing.T, ctx context.Context, c *locks.Claim) int64 {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			l := held(t, ctx, c)
			require.NoError(t, l.Release(ended))
			return l.Token()
		},
		"given up": func(t *testing.T, ctx context.Context, c *locks.Claim) int64 {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			_, err := c.Lock(short)
			require.Error(t, err)
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			for step := range 60 {
				in(t, func(t *testing.T, w *world) {
					a := w.member("a")
					require.NoError(t, a.MakeDirs(t.Context(), "/desks"))
					a.Link.Delay(50 * time.Millisecond)
					c := locks.NewClaim(a.Client, pathMutex)
					token := former(t, t.Context(), c)
					w.zk.DropReply(1+step%2, zktest.Match{Func: isClaim})
					time.Sleep(time.Duration(step/2) * 10 * time.Millisecond)
					next := held(t, t.Context(), c)
					require.NotEqual(t, token, next.Token(), "step %d", step)
					time.Sleep(2 * timeout)
					require.NoError(t, next.Err(), "step %d", step)
					n, _ := w.zk.Node(pathMutex)
					require.Equal(t, n.Stat.Czxid, next.Token(), "step %d", step)
					released(t, next)
				})
			}
		})
	}
}

// TestNextClaimWaitsForThrottledDeletion: the servers put off the deletion of the former claim's
// node, and the reply to the next claim is lost. The next claim must not take that node, which the
// session still owns, for its own.
func TestNextClaimWaitsForThrottledDeletion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.MakeDirs(t.Context(), "/claims"))
		c := locks.NewClaim(a.Client, "/claims/c")
		former := held(t, t.Context(), c)
		a.Link.Delay(50 * time.Millisecond)
		lost := w.zk.DropReply(1, zktest.Match{Func: isClaim})
		go func() {
			<-lost.Hit()
			// the next connection begins with a look at the former node
			w.zk.Throttle(2, zktest.Match{Op: zktest.OpExists})
		}()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, former.Release(ended))
		next := held(t, t.Context(), c)
		<-lost.Hit()
		require.NotEqual(t, former.Token(), next.Token())
		time.Sleep(2 * timeout)
		require.NoError(t, next.Err())
		released(t, next)
	})
}

// TestTheTokenOfSeveralIsTheHighest, whichever was granted last.
func TestTheTokenOfSeveralIsTheHighest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		l := held(t, t.Context(), locks.NewMultiLock(mutexes(c, "/m/a", "/m/b")...))
		n, _ := w.zk.Node("/m/b/" + w.zk.Children("/m/b")[0])
		require.Equal(t, n.Stat.Czxid, l.Token())
	})
}

// TestLapsedPartOfMultiIsAcquiredAgain: the process was stopped while it had a part and asked for
// the next, and no timer has fired yet.
func TestLapsedPartOfMultiIsAcquiredAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		clock := &stopped{Clock: clock.Time()}
		c := w.zk.Member(t, "a", config, testclock.WithClock(clock)).Client
		other := locks.NewMutex(w.member("b").Client, "/m/b")
		stops := 0
		l := held(t, t.Context(),
			locks.NewMultiLock(locks.NewMutex(c, "/m/a"),
				custom{other, func(ctx context.Context) (*locks.Lease, error) {
					lease, err := other.Lock(ctx)
					if stops++; stops == 1 {
						clock.ahead.Store(int64(timeout))
					}
					return lease, err
				}}))
		require.NoError(t, l.Err())
		require.Equal(t, 2, stops)
		synctest.Wait()
	})
}
