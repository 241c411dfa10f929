package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// nested is the outcome of a request under a lease.
type nested struct {
	lease *locks.Lease
	err   error
	after time.Duration
}

// lockUnder asks for a lock with a lease's context.
func lockUnder(outer *locks.Lease, l locks.Locker) <-chan nested {
	done := make(chan nested, 1)
	began := time.Now()
	go func() {
		lease, err := l.Lock(outer.Context())
		done <- nested{lease, err, time.Since(began)}
	}()
	return done
}

// isDeadlock requires that a request has failed by a deadlock of these locks, named from its own
// on.
func isDeadlock(t *testing.T, n nested, paths ...string) {
	t.Helper()
	require.ErrorIs(t, n.err, locks.ErrDeadlock)
	var found *locks.DeadlockError
	require.ErrorAs(t, n.err, &found)
	var waits []string
	for i, a := range found.Cycle {
		waits = append(waits, a.Path)
		require.Contains(t, found.Cycle[i].Holds, found.Cycle[(i+len(found.Cycle)-1)%len(found.Cycle)].Path)
		require.LessOrEqual(t, a.Number, found.Cycle[0].Number)
		require.Contains(t, n.err.Error(), a.Path)
	}
	require.Equal(t, paths, waits)
	require.Less(t, n.after, 3*time.Second)
}

func waitsLeft(w *world) (left []string) {
	for _, node := range w.ephemerals() {
		if strings.Contains(node, "~waits/") {
			left = append(left, node)
		}
	}
	return left
}

func TestTheYoungestRequestOfADeadlockFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var lockers [3][3]*locks.Mutex
		var held [3]*locks.Lease
		names := []string{"/locks/a", "/locks/b", "/locks/c"}
		for i := range 3 {
			m := w.member(names[i])
			for k := range 3 {
				lockers[i][k] = locks.NewMutex(m.Client, names[k])
			}
		}
		for n := 2; n <= 3; n++ {
			var asks [3]<-chan nested
			for i := range n {
				var err error
				held[i], err = lockers[i][i].Lock(t.Context())
				require.NoError(t, err)
			}
			for i := range n {
				asks[i] = lockUnder(held[i], lockers[i][(i+1)%n])
				time.Sleep(100 * time.Millisecond)
			}
			failed := <-asks[n-1]
			cycle := []string{names[0]}
			for i := 1; i < n; i++ {
				cycle = append(cycle, names[i])
			}
			isDeadlock(t, failed, cycle...)
			require.GreaterOrEqual(t, failed.after, time.Second)
			require.NoError(t, held[n-1].Release(t.Context()))
			for i := n - 2; i >= 0; i-- {
				got := <-asks[i]
				require.NoError(t, got.err)
				require.NoError(t, got.lease.Release(t.Context()))
				require.NoError(t, held[i].Release(t.Context()))
			}
			synctest.Wait()
			w.nothingLeft(t)
		}
	})
}

func TestShortWaitRecordsNoDeadlockEntry(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		la, err := locks.NewMutex(a.Client, "/locks/a").Lock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
		require.NoError(t, err)
		ask := lockUnder(la, locks.NewMutex(a.Client, "/locks/b"))
		creates := w.zk.Requests()[zktest.OpCreate]
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, lb.Release(t.Context()))
		require.NoError(t, (<-ask).err)
		require.LessOrEqual(t, w.zk.Requests()[zktest.OpCreate]-creates, int64(1))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Empty(t, waitsLeft(w))
	})
}

// TestAStaleRequestCausesNoAlarm: a request has ended whose client cannot tell the servers.
func TestAStaleRequestCausesNoAlarm(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		la, err := locks.NewMutex(a.Client, "/locks/a").Lock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
		require.NoError(t, err)
		patience, giveUp := context.WithCancel(la.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := locks.NewMutex(a.Client, "/locks/b").Lock(patience)
			ended <- err
		}()
		time.Sleep(2 * time.Second)
		require.Len(t, waitsLeft(w), 1)
		a.Link.Cut()
		giveUp()
		require.ErrorIs(t, <-ended, context.Canceled)
		ask := lockUnder(lb, locks.NewMutex(b.Client, "/locks/a"))
		time.Sleep(4 * time.Second)
		require.Len(t, waitsLeft(w), 2, "the record of the request that has ended is still there")
		a.Link.Heal()
		time.Sleep(time.Second)
		require.NoError(t, la.Err())
		require.NoError(t, la.Release(t.Context()))
		got := <-ask
		require.NoError(t, got.err)
	})
}

func TestDeadlocksOfAllKinds(t *testing.T) {
	handoff := locks.WithLocalHandoff(time.Minute)
	kinds := map[string]func(c *framework.Client, path string) locks.Locker{
		"mutex":   func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path) },
		"writer":  func(c *framework.Client, path string) locks.Locker { return locks.NewRWLock(c, path) },
		"claim":   func(c *framework.Client, path string) locks.Locker { return locks.NewClaim(c, path) },
		"permit":  func(c *framework.Client, path string) locks.Locker { return locks.NewSemaphore(c, path, 1) },
		"handoff": func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path, handoff) },
		"data": func(c *framework.Client, path string) locks.Locker {
			return locks.NewMutex(c, path, locks.WithData([]byte("x")))
		},
	}
	for first, newFirst := range kinds {
		for second, newSecond := range kinds {
			for _, oneClient := range []bool{false, true} {
				name := first + " and " + second
				if oneClient {
					name += " of one client"
				}
				t.Run(name, func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						a := w.member("a").Client
						af, as := newFirst(a, "/locks/f"), newSecond(a, "/locks/s")
						bf, bs := af, as // a slice is passed among the users of one Mutex
						if !oneClient {
							b := w.member("b").Client
							bf, bs = newFirst(b, "/locks/f"), newSecond(b, "/locks/s")
						}
						la, err := af.Lock(t.Context())
						require.NoError(t, err)
						lb, err := bs.Lock(t.Context())
						require.NoError(t, err)
						older := lockUnder(la, as)
						time.Sleep(200 * time.Millisecond)
						failed := <-lockUnder(lb, bf)
						isDeadlock(t, failed, "/locks/f", "/locks/s")
						require.NoError(t, lb.Release(t.Context()))
						got := <-older
						require.NoError(t, got.err)
						require.NoError(t, got.lease.Release(t.Context()))
						require.NoError(t, la.Release(t.Context()))
						time.Sleep(time.Second)
						require.Empty(t, waitsLeft(w))
					})
				})
			}
		}
	}
}

// TestDeadlockOfReaderWaitingBehindWriter: the writer between them holds nothing.
func TestDeadlockOfReaderWaitingBehindWriter(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		la, err := locks.NewRWLock(a.Client, "/locks/rw").RLock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b.Client, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		ctx, giveUp := context.WithCancel(t.Context())
		writer := make(chan error, 1)
		go func() {
			l, err := locks.NewRWLock(c.Client, "/locks/rw").Lock(ctx)
			if err == nil {
				_ = l.Release(t.Context())
			}
			writer <- err
		}()
		time.Sleep(time.Second)
		older := lockUnder(la, locks.NewMutex(a.Client, "/locks/m"))
		time.Sleep(time.Second)
		failed := <-lockUnder(lb, locks.NewRWLock(b.Client, "/locks/rw").RLocker())
		isDeadlock(t, failed, "/locks/rw", "/locks/m")
		require.NoError(t, lb.Release(t.Context()))
		require.NoError(t, (<-older).err)
		giveUp()
		require.ErrorIs(t, <-writer, context.Canceled)
	})
}

// TestAPermitOfAnotherHolderIsAWayOut: a semaphore's waiter is stuck only if all holders that it
// needs are.
func TestAPermitOfAnotherHolderIsAWayOut(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, free := w.member("a"), w.member("b"), w.member("free")
		la, err := locks.NewSemaphore(a.Client, "/locks/s", 2).Lock(t.Context())
		require.NoError(t, err)
		out, err := locks.NewSemaphore(free.Client, "/locks/s", 2).Lock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b.Client, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		older := lockUnder(la, locks.NewMutex(a.Client, "/locks/m"))
		younger := lockUnder(lb, locks.NewSemaphore(b.Client, "/locks/s", 2))
		time.Sleep(10 * time.Second)
		require.Empty(t, younger, "the third holder may release")
		require.NoError(t, out.Release(t.Context()))
		got := <-younger
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
		require.NoError(t, lb.Release(t.Context()))
		require.NoError(t, (<-older).err)
	})
}

// TestAllHoldersOfPermitsInADeadlock: two holders of permits wait for the lock of the third, who
// waits for a permit.
func TestAllHoldersOfPermitsInADeadlock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var older []<-chan nested
		c := w.member("c")
		lc, err := locks.NewMutex(c.Client, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		for range 2 {
			m := w.member("m")
			l, err := locks.NewSemaphore(m.Client, "/locks/s", 2).Lock(t.Context())
			require.NoError(t, err)
			older = append(older, lockUnder(l, locks.NewMutex(m.Client, "/locks/m")))
			synctest.Wait() // it stands in line, before the next one
		}
		time.Sleep(time.Second)
		failed := <-lockUnder(lc, locks.NewSemaphore(c.Client, "/locks/s", 2))
		var found *locks.DeadlockError
		require.ErrorAs(t, failed.err, &found)
		require.Len(t, found.Cycle, 3)
		require.Equal(t, "/locks/s", found.Cycle[0].Path)
		require.NoError(t, lc.Release(t.Context()))
		got := <-older[0]
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
		require.NoError(t, (<-older[1]).err)
	})
}

// TestRequestThatHoldsNothingOfADeadlockDoesNotFail: it was told of a lock that was released since,
// and stands in line before a request of a deadlock. Its failure would end nothing, though its
// record is the youngest.
func TestRequestThatHoldsNothingOfADeadlockDoesNotFail(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const path = "/locks/s"
		c, d, holders := w.member("c"), w.member("d"), []*zktest.Member{w.member("a"), w.member("b")}
		former, err := locks.NewMutex(d.Client, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		outdated, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(former.Context()))
		require.NoError(t, err)
		require.NoError(t, former.Release(t.Context()))
		lc, err := locks.NewMutex(c.Client, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		var permits []*locks.Lease
		for _, m := range holders {
			l, err := locks.NewSemaphore(m.Client, path, 2).Lock(t.Context())
			require.NoError(t, err)
			permits = append(permits, l)
		}
		ahead := waitsOn(outdated, locks.NewSemaphore(d.Client, path, 2))
		time.Sleep(300 * time.Millisecond) // the holders look behind it
		var older []<-chan nested
		for i, m := range holders {
			older = append(older, lockUnder(permits[i], locks.NewMutex(m.Client, "/locks/m")))
			synctest.Wait() // it stands in line, before the next one
		}
		time.Sleep(200 * time.Millisecond)
		behind := lockUnder(lc, locks.NewSemaphore(c.Client, path, 2))
		time.Sleep(700 * time.Millisecond)
		for _, node := range waitsLeft(w) {
			if strings.HasPrefix(node, path) { // that of the request ahead, which creates it again behind the other's
				require.NoError(t, c.Delete(t.Context(), node, framework.AnyVersion))
			}
		}
		failed := <-behind
		var found *locks.DeadlockError
		require.ErrorAs(t, failed.err, &found)
		require.Len(t, found.Cycle, 3, "without the request ahead of it: %v", found)
		require.Empty(t, ahead)
		require.NoError(t, lc.Release(t.Context()))
		got := <-older[0]
		require.NoError(t, got.err)
		require.NoError(t, got.lease.Release(t.Context()))
		require.NoError(t, (<-older[1]).err)
	})
}

// TestPermitHolderDeadlocksWithItself, which no second process is needed for.
func TestPermitHolderDeadlocksWithItself(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := locks.NewSemaphore(w.member("a").Client, "/locks/s", 1)
		l, err := s.Lock(t.Context())
		require.NoError(t, err)
		isDeadlock(t, <-lockUnder(l, s), "/locks/s")
	})
}

// TestPartsOfAMultiLockAreHeldMeanwhile: a multi-lock waits for a lock whose holder waits for
// another one of its parts.
func TestPartsOfAMultiLockAreHeldMeanwhile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
		require.NoError(t, err)
		multi := locks.NewMultiLock(locks.NewMutex(a.Client, "/locks/a"), locks.NewMutex(a.Client, "/locks/b"))
		failed := make(chan error, 1)
		go func() {
			l, err := multi.Lock(t.Context())
			if err == nil {
				_ = l.Release(t.Context())
			}
			failed <- err
		}()
		time.Sleep(500 * time.Millisecond)
		isDeadlock(t, <-lockUnder(lb, locks.NewMutex(b.Client, "/locks/a")), "/locks/a", "/locks/b")
		require.NoError(t, lb.Release(t.Context()))
		require.NoError(t, <-failed)
	})
}

func TestDeadlockModes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, mode := range []locks.DeadlockMode{locks.DeadlockReport, locks.DeadlockOff} {
			a, b := w.member("a"), w.member("b")
			opt := locks.WithDeadlockMode(mode)
			la, err := locks.NewMutex(a.Client, "/locks/a").Lock(t.Context())
			require.NoError(t, err)
			lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
			require.NoError(t, err)
			fails := lockUnder(la, locks.NewMutex(a.Client, "/locks/b"))
			time.Sleep(time.Second)
			waits := lockUnder(lb, locks.NewMutex(b.Client, "/locks/a", opt))
			time.Sleep(4 * time.Second)
			require.Empty(t, waits)
			if mode == locks.DeadlockReport {
				require.ErrorIs(t, (<-fails).err, locks.ErrDeadlock, "the younger one only reports")
			} else {
				require.Empty(t, fails, "half of a deadlock is not seen")
			}
			require.NoError(t, la.Release(t.Context()))
			require.NoError(t, (<-waits).err)
			require.NoError(t, lb.Release(t.Context()))
			w.close(a, b)
			time.Sleep(time.Second)
		}
		_, err := locks.NewMutex(w.member("c").Client, path, locks.WithDeadlockMode(7)).Lock(t.Context())
		require.ErrorContains(t, err, "WithDeadlockMode")
	})
}

// TestACarriedHoldIsInTheDeadlock: another process of the same task asks.
func TestACarriedHoldIsInTheDeadlock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asks []<-chan nested
		names := []string{"/locks/a", "/locks/b"}
		var outer []*locks.Lease
		for i := range 2 {
			l, err := locks.NewMutex(w.member("parent").Client, names[i]).Lock(t.Context())
			require.NoError(t, err)
			outer = append(outer, l)
		}
		for i := range 2 {
			ctx, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(outer[i].Context()))
			require.NoError(t, err)
			m := locks.NewMutex(w.member("child").Client, names[1-i])
			done := make(chan nested, 1)
			began := time.Now()
			asks = append(asks, done)
			go func() {
				l, err := m.Lock(ctx)
				done <- nested{l, err, time.Since(began)}
			}()
			time.Sleep(100 * time.Millisecond)
		}
		isDeadlock(t, <-asks[1], "/locks/a", "/locks/b")
		require.NoError(t, outer[1].Release(t.Context()))
		require.NoError(t, (<-asks[0]).err)
		stale, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(outer[0].Context()))
		require.NoError(t, err)
		require.NoError(t, outer[0].Release(t.Context()))
		ctx, cancel := context.WithTimeout(stale, 5*time.Second)
		defer cancel()
		_, err = locks.NewMutex(w.member("late").Client, "/locks/b").Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	for _, text := range []string{"x", "{}", `[{"lock":"a"}]`, `[{"lock":"/a","node":"/a/b","zxid":-1}]`,
		strings.Repeat("x", 1<<20)} {
		_, err := locks.WithHeldLocks(t.Context(), text)
		require.ErrorContains(t, err, "held locks")
	}
	ctx, err := locks.WithHeldLocks(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, locks.HeldLocks(ctx))
	require.False(t, errors.Is(ctx.Err(), locks.ErrDeadlock))
}

func (w *world) close(members ...*zktest.Member) {
	for _, m := range members {
		require.NoError(w.t, m.Close(w.t.Context()))
	}
}

// waitsOn asks for a lock under a context.
func waitsOn(ctx context.Context, l locks.Locker) <-chan nested {
	done := make(chan nested, 1)
	began := time.Now()
	go func() {
		lease, err := l.Lock(ctx)
		done <- nested{lease, err, time.Since(began)}
	}()
	return done
}

// TestRecreatedClaimIsNoDeadlock: a process counts on a claim of its parent's that is another one's
// by now.
func TestRecreatedClaimIsNoDeadlock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a").Client, w.member("b").Client, w.member("c").Client
		lease, err := locks.NewClaim(a, "/locks/claim").Lock(t.Context())
		require.NoError(t, err)
		stale, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(lease.Context()))
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		taken, err := locks.NewClaim(b, "/locks/claim").Lock(t.Context())
		require.NoError(t, err)
		lc, err := locks.NewMutex(c, "/locks/m").Lock(t.Context())
		require.NoError(t, err)
		waits := lockUnder(lc, locks.NewClaim(c, "/locks/claim"))
		time.Sleep(100 * time.Millisecond)
		counts := waitsOn(stale, locks.NewMutex(a, "/locks/m"))
		time.Sleep(5 * time.Second)
		require.Empty(t, waits)
		require.Empty(t, counts)
		require.NoError(t, taken.Release(t.Context()))
		require.NoError(t, (<-waits).err)
		require.NoError(t, lc.Release(t.Context()))
		require.NoError(t, (<-counts).err)
	})
}

// TestAWrongRecordHarmsNoOthers: somebody claims to hold what another one holds.
func TestAWrongRecordHarmsNoOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c := w.member("a").Client, w.member("c").Client
		la, err := locks.NewMutex(a, "/locks/a").Lock(t.Context())
		require.NoError(t, err)
		lc, err := locks.NewMutex(c, "/locks/c").Lock(t.Context())
		require.NoError(t, err)
		wrong, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(lc.Context()))
		require.NoError(t, err)
		liar := waitsOn(wrong, locks.NewMutex(w.member("liar").Client, "/locks/a"))
		time.Sleep(100 * time.Millisecond)
		younger := lockUnder(la, locks.NewMutex(a, "/locks/c"))
		require.ErrorIs(t, (<-liar).err, locks.ErrDeadlock)
		time.Sleep(2 * time.Second)
		require.Empty(t, younger)
		require.NoError(t, lc.Release(t.Context()))
		require.NoError(t, (<-younger).err)
	})
}

// TestInvalidRecordsAreIgnored: anybody may write beside a lock.
func TestInvalidRecordsAreIgnored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		la, err := locks.NewMutex(a, "/locks/a").Lock(t.Context())
		require.NoError(t, err)
		lb, err := locks.NewMutex(b, "/locks/b").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.MakeDirs(t.Context(), "/locks/a~waits/other"))
		for i, data := range []string{"", "x", "{}", `{"v":1,"lock":"a"}`, `{"v":1,"lock":"/locks/a","node":"//"}`,
			`{"v":1,"lock":"/locks/b","held":[]}`, `{"v":1,"lock":"/locks/a","permits":-1}`} {
			name := "/locks/a~waits/_c_0-ask-" + string(rune('0'+i))
			require.NoError(t, a.Create(t.Context(), name, []byte(data), framework.Ephemeral))
		}
		older := lockUnder(la, locks.NewMutex(a, "/locks/b"))
		time.Sleep(100 * time.Millisecond)
		isDeadlock(t, <-lockUnder(lb, locks.NewMutex(b, "/locks/a")), "/locks/a", "/locks/b")
		require.NoError(t, lb.Release(t.Context()))
		require.NoError(t, (<-older).err)
	})
}

// TestLostRequestRecordIsCreatedAgain: its answer is lost, somebody deletes it, and the session
// that asks is lost.
func TestLostRequestRecordIsCreatedAgain(t *testing.T) {
	for _, loss := range []string{"answer", "record", "session"} {
		t.Run(loss, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				la, err := locks.NewMutex(a.Client, "/locks/a").Lock(t.Context())
				require.NoError(t, err)
				lb, err := locks.NewMutex(b.Client, "/locks/b").Lock(t.Context())
				require.NoError(t, err)
				asking := a.Client
				ctx := la.Context()
				if loss == "session" {
					ctx, err = locks.WithHeldLocks(t.Context(), locks.HeldLocks(ctx))
					require.NoError(t, err)
					asking = w.member("child").Client
				}
				older := waitsOn(ctx, locks.NewMutex(asking, "/locks/b"))
				time.Sleep(900 * time.Millisecond)
				switch loss {
				case "answer":
					w.zk.DropReply(1, zktest.Match{Op: zktest.OpCreate})
				case "record":
					time.Sleep(time.Second)
					require.NoError(t, b.Delete(t.Context(), waitsLeft(w)[0], framework.AnyVersion))
				case "session":
					time.Sleep(time.Second)
					s, err := asking.Session(t.Context())
					require.NoError(t, err)
					require.NoError(t, w.zk.Expire(s.ID()))
				}
				time.Sleep(3 * time.Second)
				require.Len(t, waitsLeft(w), 1)
				younger := waitsOn(lb.Context(), locks.NewMutex(b.Client, "/locks/a"))
				var found *locks.DeadlockError
				select {
				case n := <-younger:
					require.ErrorAs(t, n.err, &found)
					require.NoError(t, lb.Release(t.Context()))
					require.NoError(t, (<-older).err)
				case n := <-older: // it counts on a lock of another session
					require.ErrorAs(t, n.err, &found)
					require.Equal(t, "session", loss)
					require.NoError(t, la.Release(t.Context()))
					require.NoError(t, (<-younger).err)
				}
				require.Len(t, found.Cycle, 2)
			})
		})
	}
}

// TestATurnIsNotCarried: another turn of the slice holds the same node.
func TestATurnIsNotCarried(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Minute))
		lease := held(t, t.Context(), m)
		require.Empty(t, locks.HeldLocks(lease.Context()))
		released(t, lease)
	})
}
