package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// number is the number that the server gave to a node, as text of one length.
func number(node string) string { return node[len(node)-10:] }

// TestAHundredGoroutinesOfOneSessionAreServedInOrder: one after the other, by the numbers of their
// nodes, though most of the hand-over happens in memory. Whose node is still there with a lower
// number has been released.
func TestAHundredGoroutinesOfOneSessionAreServedInOrder(t *testing.T) {
	const goroutines = 100
	for name, opts := range map[string][]locks.MutexOption{"strict release": nil,
		"release on write": {locks.WithAsyncRelease()}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("m")
				m.Link.Delay(time.Millisecond)
				mutex := locks.NewMutex(m.Client, path, opts...)
				released(t, held(t, t.Context(), mutex)) // the directory is there
				before := w.requests()
				var mu sync.Mutex
				over := map[string]bool{}
				var grants []string
				var wg sync.WaitGroup
				inside := 0
				for range goroutines {
					wg.Go(func() {
						l := held(t, t.Context(), mutex)
						mu.Lock()
						inside++
						require.Equal(t, 1, inside)
						grants = append(grants, number(l.Node()))
						for _, child := range w.zk.Children(path) {
							if number(child) < number(l.Node()) {
								require.True(t, over[number(child)], "%s is passed over", child)
							}
						}
						mu.Unlock()
						time.Sleep(100 * time.Microsecond)
						mu.Lock()
						inside--
						over[number(l.Node())] = true
						mu.Unlock()
						released(t, l)
					})
				}
				wg.Wait()
				require.Len(t, grants, goroutines)
				require.True(t, slices.IsSorted(grants), "%v", grants)
				require.LessOrEqual(t, w.requests()-before, int64(2*goroutines+10),
					"a create and a deletion each, and a few to begin")
				w.nothingLeft(t)
			})
		})
	}
}

// queue is waiters of one session behind a holder, in order, each with its own way to give up.
type queue struct {
	*asker
	holder *locks.Lease
	giveUp map[string]context.CancelFunc
}

// stand makes a queue of n, the i-th by lockers(i), behind a holder by lockers(0).
func (w *world) stand(t *testing.T, n int, lockers func(i int) locks.Locker) *queue {
	q := &queue{newAsker(t), held(t, t.Context(), lockers(0)), map[string]context.CancelFunc{}}
	for i := range n {
		ctx, cancel := context.WithCancel(t.Context())
		name := fmt.Sprintf("%03d", i)
		q.giveUp[name] = cancel
		q.ask(name, func(context.Context) (*locks.Lease, error) { return lockers(i).Lock(ctx) })
	}
	require.Empty(t, q.now())
	return q
}

// serve releases one after the other and returns the order of grants.
func (q *queue) serve(t *testing.T) (order []string) {
	require.NoError(t, q.holder.Release(t.Context()))
	for next := q.now(); len(next) > 0; next = q.now() {
		require.Len(t, next, 1, "one at a time")
		order = append(order, next[0])
		q.release(next[0])
	}
	return order
}

// TestWaitersOfOneSessionThatGiveUp at the front, in the middle, at the end or nearly all leave the
// others in their order.
func TestWaitersOfOneSessionThatGiveUp(t *testing.T) {
	const waiters = 8
	rows := map[string]func(w *world) func(i int) locks.Locker{
		"one row": func(w *world) func(int) locks.Locker {
			m := locks.NewMutex(w.member("a").Client, path)
			return func(int) locks.Locker { return m }
		},
		"pairs of two sessions": func(w *world) func(int) locks.Locker {
			ms := []locks.Locker{locks.NewMutex(w.member("a").Client, path), locks.NewMutex(w.member("b").Client, path)}
			return func(i int) locks.Locker { return ms[i/2%2] }
		},
	}
	for name, lockers := range rows {
		t.Run(name, func(t *testing.T) {
			for who := range 1 << waiters { // every set of them
				in(t, func(t *testing.T, w *world) {
					q := w.stand(t, waiters, lockers(w))
					var stay []string
					for i := range waiters {
						name := fmt.Sprintf("%03d", i)
						if who>>i&1 == 1 {
							q.giveUp[name]()
							continue
						}
						stay = append(stay, name)
					}
					for _, said := range q.now() {
						require.Contains(t, said, context.Canceled.Error())
					}
					require.Equal(t, stay, q.serve(t), "%b", who)
					w.nothingLeft(t)
				})
			}
		})
	}
}

// TestGivingUpAsOnesTurnComes: the wait's end and the release before it race. Whichever wins, the
// next one is served, and nothing is left.
func TestGivingUpAsOnesTurnComes(t *testing.T) {
	for seed := range uint64(100) {
		in(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 3))
			m := w.member("a")
			m.Link.Delay(time.Duration(r.IntN(3)) * time.Millisecond)
			mutex := locks.NewMutex(m.Client, path)
			q := w.stand(t, 4, func(int) locks.Locker { return mutex })
			time.Sleep(100 * time.Millisecond)
			require.Empty(t, q.now())
			for _, name := range []string{"000", "001"} {
				time.AfterFunc(time.Duration(r.IntN(4))*time.Millisecond, q.giveUp[name])
			}
			_ = q.holder.Release(t.Context())
			time.Sleep(100 * time.Millisecond)
			last := ""
			for granted := q.now(); len(granted) > 0; granted = q.now() {
				for _, name := range granted {
					if strings.Contains(name, context.Canceled.Error()) {
						continue
					}
					require.Less(t, last, name)
					last = name
					q.release(name)
				}
				time.Sleep(100 * time.Millisecond)
			}
			require.Equal(t, "003", last, "seed %d", seed)
			w.nothingLeft(t)
		})
	}
}

// TestTheNextOfTheSessionIsServedWhileSuspended: the hand-over needs no server while the session's
// lease stands.
func TestTheNextOfTheSessionIsServedWhileSuspended(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, other := w.member("m"), w.member("other")
		mutex := locks.NewMutex(m.Client, path)
		q := w.stand(t, 2, func(int) locks.Locker { return mutex })
		rival := newAsker(t)
		rival.ask("rival", locks.NewMutex(other.Client, path).Lock)
		m.Link.BlackHole(true, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, q.holder.Release(ctx), framework.ErrUnconfirmed)
		require.Equal(t, []string{"000"}, q.now(), "the deletion is in the connection's queue")
		require.NoError(t, q.lease("000").Err())
		time.Sleep(timeout / 8)
		m.Link.BlackHole(false, false)
		time.Sleep(time.Second)
		require.NoError(t, q.lease("000").Err())
		require.Empty(t, rival.now())
		q.release("000")
		require.Equal(t, []string{"001"}, q.now())
		q.release("001")
		require.Equal(t, []string{"rival"}, rival.now())
		rival.release("rival")
		w.nothingLeft(t)
	})
}

// TestGuardedWritesOfNeighboursDoNotCross: at the server, what a holder wrote under guard comes
// after the deletion of all nodes before its own, also what it was still writing while it released.
func TestGuardedWritesOfNeighboursDoNotCross(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const holders = 100
		m := w.member("m")
		require.NoError(t, m.Create(t.Context(), "/data", nil, framework.Persistent))
		m.Link.Delay(time.Millisecond)
		gone, writes := map[string]bool{}, 0
		var crossed []string
		w.zk.Observe(func(r zktest.Request) { // one at a time
			switch {
			case r.Err == 0 && r.Op == zktest.OpDelete:
				gone[number(r.Path)] = true
			case r.Op == zktest.OpMulti && r.Parts[len(r.Parts)-1].Path == "/data" && r.Parts[0].Err == 0:
				writes++
				if before, _ := strconv.Atoi(number(r.Parts[0].Path)); len(gone) != before {
					crossed = append(crossed, r.Parts[0].Path)
				}
			}
		})
		mutex := locks.NewMutex(m.Client, path)
		var wg sync.WaitGroup
		for range holders {
			wg.Go(func() {
				l := held(t, t.Context(), mutex)
				write := func() error {
					_, err := m.Multi(t.Context(), l.Guard(),
						framework.SetOp("/data", []byte(l.Node()), framework.AnyVersion))
					return err
				}
				require.NoError(t, write())
				wg.Go(func() { _ = write() }) // may be too late, and is refused then
				released(t, l)
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Empty(t, crossed)
		require.GreaterOrEqual(t, writes, holders)
		require.Len(t, gone, holders)
	})
}

// TestAWaiterOfANewDirectoryIsNoNeighbourOfTheOld: the servers have removed the directory behind a
// holder's node, and another session holds in the next one, with the number that the former holder
// had. A goroutine of the former holder's session joins before that session knows that its node is
// gone. The answers come together, so its goroutines handle them in any order.
func TestAWaiterOfANewDirectoryIsNoNeighbourOfTheOld(t *testing.T) {
	for name, grant := range map[string]func(t *testing.T, m *zktest.Member) (locks.Locker, *locks.Lease){
		"guarded": func(t *testing.T, m *zktest.Member) (locks.Locker, *locks.Lease) {
			mutex := locks.NewMutex(m.Client, path)
			l := held(t, t.Context(), mutex)
			_, err := m.Multi(t.Context(), l.Guard(), framework.CreateOp("/guarded", nil, framework.Persistent))
			require.NoError(t, err)
			return mutex, l
		},
		"not guarded": func(t *testing.T, m *zktest.Member) (locks.Locker, *locks.Lease) {
			mutex := locks.NewMutex(m.Client, path)
			return mutex, held(t, t.Context(), mutex)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 30 {
				in(t, func(t *testing.T, w *world) {
					a, b := w.member("a"), w.member("b")
					mutex, first := grant(t, a)
					slow := w.zk.DelayReplies(time.Second, zktest.Match{Session: sessionOf(t, a).ID()})
					var all sync.WaitGroup
					all.Go(func() { released(t, first) })
					synctest.Wait()
					w.zk.Reap()
					other := held(t, t.Context(), locks.NewMutex(b.Client, path))
					require.Equal(t, number(first.Node()), number(other.Node()))
					all.Go(func() {
						second := held(t, t.Context(), mutex)
						require.Error(t, other.Err(), "there were two holders")
						released(t, second)
					})
					time.Sleep(2 * time.Second)
					slow.Cancel()
					released(t, other)
					all.Wait()
				})
			}
		})
	}
}

// TestPermitsOfANewDirectoryAreGrantedInOrder is the same for the line of a semaphore, which a
// holder leaves as it takes its permits. The answer is lost, so the holder asks what has happened,
// and the other goroutine joins meanwhile.
func TestPermitsOfANewDirectoryAreGrantedInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		ours, theirs := locks.NewSemaphore(a.Client, path, 2), locks.NewSemaphore(b.Client, path, 2)
		released(t, held(t, t.Context(), ours)) // it knows the number of permits then
		keeper := held(t, t.Context(), theirs)  // so that the directory of leases stays
		w.zk.Reap()
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		acquire := func(name string, s *locks.Semaphore) {
			all.Go(func() {
				l := held(t, t.Context(), s)
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Minute)
				released(t, l)
			})
			synctest.Wait()
		}
		lost := w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool {
			return strings.HasPrefix(r.Parts[0].Path, path+"/leases/")
		}})
		a.Link.Delay(10 * time.Millisecond)
		acquire("first", ours)
		<-lost.Hit()
		a.Link.Cut()
		w.zk.Reap()
		acquire("second", theirs)
		acquire("third", ours)
		a.Link.Heal()
		time.Sleep(time.Second)
		a.Link.Delay(0)
		b.Link.Delay(10 * time.Millisecond) // so that the third is faster when the first releases
		all.Wait()
		require.Equal(t, []string{"first", "second", "third"}, order)
		released(t, keeper)
	})
}
