package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

const pool = "/pools/a"

// permitLocker returns a request for n permits.
func permitLocker(s *locks.Semaphore, n int) func(context.Context) (*locks.Lease, error) {
	return func(ctx context.Context) (*locks.Lease, error) { return s.Acquire(ctx, n) }
}

// semMembers runs a test with members on sessions of their own, and all on one.
func semMembers(t *testing.T, permits int, test func(t *testing.T, w *world, sem func() *locks.Semaphore)) {
	t.Run("own sessions", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			test(t, w, func() *locks.Semaphore { return locks.NewSemaphore(w.member("m").Client, pool, permits) })
		})
	})
	t.Run("one session", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			c := w.member("m").Client
			test(t, w, func() *locks.Semaphore { return locks.NewSemaphore(c, pool, permits) })
		})
	})
}

func TestPermitsAreGrantedInOrder(t *testing.T) {
	semMembers(t, 3, func(t *testing.T, w *world, sem func() *locks.Semaphore) {
		a := newAsker(t)
		a.ask("a2", permitLocker(sem(), 2))
		a.ask("b1", permitLocker(sem(), 1))
		require.Equal(t, []string{"a2", "b1"}, a.now())
		a.ask("c3", permitLocker(sem(), 3))
		a.ask("d1", permitLocker(sem(), 1))
		require.Empty(t, a.now())
		a.release("b1")
		require.Empty(t, a.now(), "one is free, but the first in line wants three")
		_, err := sem().TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		require.Len(t, w.zk.Children(pool+"/leases"), 2, "who waits holds none")
		a.release("a2")
		require.Equal(t, []string{"c3"}, a.now())
		a.release("c3")
		require.Equal(t, []string{"d1"}, a.now())
		l, err := sem().TryAcquire(t.Context(), 2)
		require.NoError(t, err)
		_, err = sem().TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		a.release("d1")
		require.NoError(t, l.Release(t.Context()))
		synctest.Wait() // for the refused one's node
		require.Empty(t, w.zk.Children(pool+"/leases"))
		require.Empty(t, w.zk.Children(pool+"/locks"))
	})
}

func TestResizingLetsWaitersIn(t *testing.T) {
	semMembers(t, 1, func(t *testing.T, _ *world, sem func() *locks.Semaphore) {
		a, s := newAsker(t), sem()
		a.ask("a", sem().Lock)
		a.ask("b", sem().Lock)
		a.ask("c", sem().Lock)
		a.ask("d", sem().Lock)
		require.Equal(t, []string{"a"}, a.now())
		require.NoError(t, s.SetLimit(t.Context(), 3))
		require.ElementsMatch(t, []string{"b", "c"}, a.now())
		require.NoError(t, s.SetLimit(t.Context(), 1))
		a.release("a", "b")
		require.Empty(t, a.now(), "one is held still")
		a.release("c")
		require.Equal(t, []string{"d"}, a.now())
		n, err := s.Limit(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		a.release("d")
	})
}

// TestSetLimitBesideAnother loses the connection of a member that resizes, while another one
// resizes: what was lost does not come back, and is no error.
func TestSetLimitBesideAnother(t *testing.T) {
	for name, arrives := range map[string]bool{"the answer is lost": true, "the request is lost": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), locks.NewSemaphore(w.member("b").Client, pool, 2)
				sem := locks.NewSemaphore(a.Client, pool, 2)
				require.NoError(t, sem.SetLimit(t.Context(), 1))
				a.Link.Delay(50 * time.Millisecond) // so that the other one comes before a looks again
				writes := w.zk.DropReply(1, zktest.Match{Op: zktest.OpSetData, Path: pool})
				resized := make(chan error, 1)
				go func() { resized <- sem.SetLimit(t.Context(), 3) }()
				if arrives {
					<-writes.Hit()
				} else {
					time.Sleep(120 * time.Millisecond) // the record is read, and the write is on its way
					a.Link.Reset()
					require.NoError(t, b.SetLimit(t.Context(), 4)) // its answer is dropped instead
				}
				require.NoError(t, b.SetLimit(t.Context(), 5))
				require.NoError(t, <-resized)
				n, err := b.Limit(t.Context())
				require.NoError(t, err)
				require.Equal(t, 5, n)
			})
		})
	}
}

// TestSetLimitByAMemberWithTheNumberBeforeAnotherSetLimit: the record does not permit the member's
// number any more after its own write, or after that of another member.
func TestSetLimitByAMemberWithTheNumberBeforeAnotherSetLimit(t *testing.T) {
	start := func(t *testing.T, w *world) (a *zktest.Member, sem, other *locks.Semaphore) {
		a, other = w.member("a"), locks.NewSemaphore(w.member("b").Client, pool, 2)
		require.NoError(t, other.SetLimit(t.Context(), 5))
		return a, locks.NewSemaphore(a.Client, pool, 5), other
	}
	permits := func(t *testing.T, s *locks.Semaphore) int {
		n, err := s.Limit(t.Context())
		require.NoError(t, err)
		return n
	}
	t.Run("its reply is lost", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			_, sem, other := start(t, w)
			w.zk.DropReply(1, zktest.Match{Op: zktest.OpSetData, Path: pool})
			require.NoError(t, sem.SetLimit(t.Context(), 7))
			require.Equal(t, 7, permits(t, other))
		})
	})
	t.Run("another member resizes", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			a, sem, other := start(t, w)
			a.Link.Delay(50 * time.Millisecond)
			resized := make(chan error, 1)
			go func() { resized <- sem.SetLimit(t.Context(), 3) }()
			time.Sleep(120 * time.Millisecond) // the record is read, and the write is on its way
			require.NoError(t, other.SetLimit(t.Context(), 7))
			require.NoError(t, <-resized)
			require.Equal(t, 3, permits(t, other))
		})
	})
	t.Run("another record takes its place", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			a, sem, _ := start(t, w)
			c := w.member("c").Client
			a.Link.Delay(50 * time.Millisecond)
			resized := make(chan error, 1)
			go func() { resized <- sem.SetLimit(t.Context(), 3) }()
			time.Sleep(120 * time.Millisecond)
			require.NoError(t, c.Delete(t.Context(), pool+"/permits", framework.AnyVersion))
			require.Equal(t, 7, permits(t, locks.NewSemaphore(c, pool, 7)))
			require.ErrorIs(t, <-resized, framework.ErrMismatch)
		})
	})
}

// TestSetLimitThatIsGivenUpTellsWhy ends the context while a member finds out whether its number
// was set before another's.
func TestSetLimitThatIsGivenUpTellsWhy(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		sem, b := locks.NewSemaphore(w.member("a").Client, pool, 2), locks.NewSemaphore(w.member("b").Client, pool, 2)
		require.NoError(t, sem.SetLimit(t.Context(), 1))
		session := w.zk.Sessions()[0].ID
		written := w.zk.DropReply(1, zktest.Match{Op: zktest.OpSetData, Path: pool})
		looked := w.zk.DropReply(3, zktest.Match{Op: zktest.OpGetData, Path: pool, Session: session})
		ctx, cancel := context.WithCancel(t.Context())
		resized := make(chan error, 1)
		go func() { resized <- sem.SetLimit(ctx, 3) }()
		<-written.Hit()
		require.NoError(t, b.SetLimit(t.Context(), 5))
		<-looked.Hit()
		cancel()
		err := <-resized
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
	})
}

func TestShrinkingBelowARequestRefusesIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := locks.NewSemaphore(w.member("m").Client, pool, 3)
		a := newAsker(t)
		a.ask("a", permitLocker(s, 1))
		a.ask("b", permitLocker(s, 3))
		require.Equal(t, []string{"a"}, a.now())
		require.NoError(t, s.SetLimit(t.Context(), 2))
		require.Equal(t, []string{"b: acquire /pools/a: number of permits: /pools/a has 2, 3 were requested; " +
			"request at most 2, or raise the number with SetLimit"}, a.now())
		a.release("a")
		require.Empty(t, w.zk.Children(pool+"/locks"))
	})
}

func TestMembersAgreeOnTheNumber(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		l, err := locks.NewSemaphore(c, pool, 2).Lock(t.Context())
		require.NoError(t, err)
		_, err = locks.NewSemaphore(c, pool, 3).Lock(t.Context())
		var p *locks.MismatchError
		require.ErrorAs(t, err, &p)
		require.Equal(t, locks.MismatchError{Path: pool, Stored: 2, Given: 3}, *p)
		require.ErrorContains(t, err,
			"has 2, the Semaphore was made with 3; make it with 2, whose SetLimit also changes the number")
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, locks.NewSemaphore(c, pool, 2).SetLimit(t.Context(), 3))
		for _, n := range []int{2, 3} { // the members of before and of after
			l, err = locks.NewSemaphore(c, pool, n).Acquire(t.Context(), 3)
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

func TestUnknownFieldsOfThePermitsSurvive(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		require.NoError(t, c.MakeDirs(t.Context(), pool))
		require.NoError(t, c.Create(t.Context(), pool+"/permits",
			[]byte(`{"v":1,"declared":2,"permits":2,"later":[1]}`), framework.Persistent))
		require.NoError(t, locks.NewSemaphore(c, pool, 2).SetLimit(t.Context(), 5))
		n, _ := w.zk.Node(pool + "/permits")
		require.JSONEq(t, `{"v":1,"declared":2,"permits":5,"later":[1]}`, string(n.Data))
		for bad, want := range map[string]string{
			`{"v":2,"declared":2,"permits":2}`: "written by a newer release: it has version 2",
			"junk":                             "record of the permits", `{"v":1}`: "record of the permits",
			`{"v":1,"declared":0,"permits":2}`: "must be more than 0", `{"v":1,"declared":"x","permits":2}`: "declared",
			"": "record of the permits",
		} {
			_, err := c.Set(t.Context(), pool+"/permits", []byte(bad), framework.AnyVersion)
			require.NoError(t, err)
			_, err = locks.NewSemaphore(c, pool, 2).Lock(t.Context())
			require.ErrorContains(t, err, want)
		}
	})
}

func TestBadNumbersOfPermits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		for _, n := range []int{0, -1, 10001} {
			_, err := locks.NewSemaphore(c, pool, n).Lock(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid)
			require.ErrorIs(t, locks.NewSemaphore(c, pool, 2).SetLimit(t.Context(), n), framework.ErrInvalid)
			_, err = locks.NewSemaphore(c, pool, 2).Acquire(t.Context(), n)
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		_, err := locks.NewSemaphore(c, pool, 2).Acquire(t.Context(), 3)
		require.ErrorContains(t, err, "/pools/a has 2, 3 were requested; request at most 2")
		_, err = locks.NewSemaphore(c, "x", 2).Lock(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.Empty(t, w.zk.Children(pool+"/locks"))
	})
}

func TestAHoldersEndFreesItsPermits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("m")
		l, err := locks.NewSemaphore(m.Client, pool, 3).Acquire(t.Context(), 3)
		require.NoError(t, err)
		m.Link.Cut()
		l2, err := locks.NewSemaphore(w.member("n").Client, pool, 3).Acquire(t.Context(), 2)
		require.NoError(t, err)
		require.ErrorIs(t, l.Err(), framework.ErrSessionLost)
		require.NoError(t, l2.Err())
		m.Link.Heal()
	})
}

func TestADeletedPermitEndsTheLease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		l, err := locks.NewSemaphore(c, pool, 3).Acquire(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, c.Delete(t.Context(), pool+"/leases/"+w.zk.Children(pool + "/leases")[1],
			framework.AnyVersion))
		<-l.Context().Done()
		require.ErrorIs(t, l.Err(), framework.ErrNodeGone)
		time.Sleep(time.Second)
		require.Empty(t, w.zk.Children(pool+"/leases"), "the others are given back")
	})
}

// TestCancelledAcquireLeavesNoNodes ends the context at many moments, with replies lost on the way.
func TestCancelledAcquireLeavesNoNodes(t *testing.T) {
	for at := range 40 {
		in(t, func(t *testing.T, w *world) {
			m := w.member("m")
			m.Link.Delay(7 * time.Millisecond)
			if at%2 == 1 {
				w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: sessionOf(t, m).ID(),
					Func: zktest.Request.Writes})
			}
			s := locks.NewSemaphore(m.Client, pool, 3)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*5*time.Millisecond)
			defer cancel()
			l, err := s.Acquire(ctx, 2)
			if err == nil {
				require.NoError(t, l.Release(t.Context()))
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			time.Sleep(timeout)
			require.Empty(t, w.zk.Children(pool+"/leases"))
			require.Empty(t, w.zk.Children(pool+"/locks"))
			l, err = s.Acquire(t.Context(), 3)
			require.NoError(t, err)
			require.Len(t, w.zk.Children(pool+"/leases"), 3)
			require.NoError(t, l.Err())
		})
	}
}

// TestCuratorsLeasesCount has a lease that nobody of this package has created.
func TestCuratorsLeasesCount(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("m")
		foreign, err := primitives.Of(sessionOf(t, m)).CreateProtected(t.Context(),
			primitives.ProtectedCreate{Dir: pool + "/leases", Name: "lease-", Data: []byte("10.0.0.1")})
		require.NoError(t, err)
		s := locks.NewSemaphore(m.Client, pool, 1)
		_, err = s.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		a := newAsker(t)
		a.ask("a", s.Lock)
		require.Empty(t, a.now())
		require.NoError(t, m.Delete(t.Context(), foreign.Nodes[0].Path, framework.AnyVersion))
		require.Equal(t, []string{"a"}, a.now())
		synctest.Wait()
	})
}

// TestALostPermitGivesTheOthersBack: somebody deletes one of a holder's nodes. The next one gets
// all permits, though the holder has not called Release.
func TestALostPermitGivesTheOthersBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		lost, err := locks.NewSemaphore(a.Client, path, 3).Acquire(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, b.Delete(t.Context(), lost.Node(), framework.AnyVersion))
		ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
		defer cancel()
		next, err := locks.NewSemaphore(b.Client, path, 3).Acquire(ctx, 3)
		require.NoError(t, err)
		require.ErrorIs(t, lost.Err(), framework.ErrNodeGone)
		released(t, next)
		w.nothingLeft(t)
		require.NoError(t, lost.Release(t.Context()))
	})
}
