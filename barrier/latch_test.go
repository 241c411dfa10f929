package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func remaining(t *testing.T, l *barrier.Latch) int {
	t.Helper()
	n, err := l.Missing(t.Context())
	require.NoError(t, err)
	return n
}

func TestALatchOpensWithItsLastCount(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := barrier.NewLatch(w.member("a").Client, path, 3), barrier.NewLatch(w.member("b").Client, path, 3)
		for range 3 {
			over, waited := async(func() error { return b.Wait(context.Background()) })
			require.Equal(t, 3, remaining(t, a))
			for i, id := range []string{"x", "y", "x", "y"} {
				require.NoError(t, a.CountDown(t.Context(), id))
				require.Equal(t, max(1, 2-i), remaining(t, b), "who counts again counts nothing")
			}
			require.ErrorIs(t, a.Reset(t.Context()), barrier.ErrCounting)
			time.Sleep(time.Hour)
			require.False(t, over())
			require.NoError(t, b.CountDown(t.Context(), "z"))
			require.NoError(t, waited())
			require.NoError(t, a.Wait(t.Context()), "it stays open")
			require.Zero(t, remaining(t, a))
			require.NoError(t, a.CountDown(t.Context(), "y"))
			for range 2 {
				require.ErrorIs(t, a.CountDown(t.Context(), "one too many"), barrier.ErrTooMany)
			}
			require.Len(t, w.Children(path+"/at"), 3)
			require.NoError(t, a.Reset(t.Context()))
		}
	})
}

func TestEachWaiterIsWokenOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := barrier.NewLatch(a.Client, path, 50)
		over, waited := async(func() error { return barrier.NewLatch(b.Client, path, 50).Wait(context.Background()) })
		require.False(t, over())
		before := w.Requests()
		for i := range 50 {
			require.NoError(t, l.CountDown(t.Context(), fmt.Sprint(i)))
		}
		require.NoError(t, waited())
		require.Equal(t, before[zktest.OpExists], w.Requests()[zktest.OpExists])
	})
}

func TestALatchSurvives(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 2), barrier.NewLatch(n.Client, path, 2)
		over, waited := async(func() error { return a.Wait(context.Background()) })
		for _, hurt := range []func(){func() { m.Link.Reset() }, w.Restart,
			func() { require.NoError(t, w.Expire(w.session(m).ID())) }} {
			hurt()
			time.Sleep(timeout)
			require.False(t, over())
		}
		for nth, op := range []zktest.Op{zktest.OpMulti, zktest.OpGetData} {
			f := w.DropReply(1, zktest.Match{Op: op, Session: w.session(n).ID(), Path: path, Func: isNoSync})
			require.NoError(t, b.CountDown(t.Context(), "x"))
			<-f.Hit()
			require.Equal(t, 1, remaining(t, b), nth)
		}
		m.Link.Cut()
		require.NoError(t, b.CountDown(t.Context(), "y"))
		f := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: w.session(n).ID(), Path: path,
			Func: zktest.Request.Writes})
		require.NoError(t, b.Reset(t.Context()))
		<-f.Hit()
		m.Link.Heal()
		require.NoError(t, waited(), "it was open for a moment while nobody could see it")
		require.Equal(t, 2, remaining(t, b))
	})
}

// TestALateResetLeavesTheNextCountAlone has a reset arrive late: another one came before, and the
// next count has begun.
func TestALateResetLeavesTheNextCountAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		late, b := barrier.NewLatch(m.Client, path, 1), barrier.NewLatch(w.member("b").Client, path, 1)
		require.NoError(t, b.CountDown(t.Context(), "x"))
		listed, own := make(chan struct{}), w.session(m).ID()
		lists := 0
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op == zktest.OpGetChildren2 {
				if lists++; lists == 2 {
					close(listed)
				}
			}
		})
		defer stop()
		m.Link.Delay(50 * time.Millisecond)
		_, reset := async(func() error { return late.Reset(t.Context()) })
		<-listed
		require.NoError(t, b.Reset(t.Context()))
		require.NoError(t, b.CountDown(t.Context(), "x"))
		require.NoError(t, reset(), "it was reset")
		require.Zero(t, remaining(t, b))
	})
}

// TestAResetReadsAgainOnTheNextSession: the session ends during one of its reads. An error of a
// read does not say whether the latch is still counting.
func TestAResetReadsAgainOnTheNextSession(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren2} {
		for counted, want := range map[bool]error{true: nil, false: barrier.ErrCounting} {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a")
				a := barrier.NewLatch(m.Client, path, 1)
				require.Equal(t, 1, remaining(t, a))
				if counted {
					require.NoError(t, a.CountDown(t.Context(), "x"))
				}
				former := w.session(m)
				lost := w.DropReply(1, zktest.Match{Op: op, Session: former.ID()})
				defer lost.Cancel()
				_, reset := async(func() error { return a.Reset(t.Context()) })
				if counted || op != zktest.OpGetChildren2 { // a latch that counts is not listed
					<-lost.Hit()
					require.NoError(t, w.Expire(former.ID()))
				}
				require.ErrorIs(t, reset(), want)
				require.Equal(t, 1, remaining(t, a))
			})
		}
	}
}

// The reply to the last count is lost, and the latch is reset before the caller asks again.
func TestACountIsNotRepeatedInTheNextCount(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 2), barrier.NewLatch(n.Client, path, 2)
		require.NoError(t, b.CountDown(t.Context(), "y"))
		require.Equal(t, 1, remaining(t, a))
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Session: w.session(m).ID(),
			Func: zktest.Request.Writes})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-lost.Hit()
		m.Link.Cut()
		require.NoError(t, b.Wait(t.Context()))
		require.NoError(t, b.Reset(t.Context()))
		m.Link.Heal()
		require.ErrorIs(t, counted(), framework.ErrOutcomeUnknown)
		require.Equal(t, 2, remaining(t, b))
		require.NoError(t, a.CountDown(t.Context(), "x"))
		require.Equal(t, 1, remaining(t, b))
	})
}

// A count that reaches the servers behind a reset, of which its caller does not know, counts in the
// new count.
func TestACountBesideAReset(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 1), barrier.NewLatch(n.Client, path, 1)
		require.NoError(t, b.CountDown(t.Context(), "y"))
		read := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetData, Session: w.session(m).ID(),
			Path: path})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-read.Hit()
		read.Cancel()
		require.NoError(t, b.Reset(t.Context()))
		require.NoError(t, counted())
		require.Zero(t, remaining(t, b))
	})
}

// TestASecondCountBesideAReset: the latch is reset while the answer that the caller has counted
// already is on its way. No reply is lost.
func TestASecondCountBesideAReset(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 1), barrier.NewLatch(n.Client, path, 1)
		require.NoError(t, b.CountDown(t.Context(), "x"))
		refused := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMulti, Session: w.session(m).ID()})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-refused.Hit()
		refused.Cancel()
		require.NoError(t, b.Reset(t.Context()))
		require.NoError(t, counted())
		require.Zero(t, remaining(t, b), "it counts in the next count")
	})
}

// TestACountBesideADeletion: the latch is deleted after the caller has read it.
func TestACountBesideADeletion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 2), barrier.NewLatch(n.Client, path, 2)
		require.Equal(t, 2, remaining(t, b))
		read := w.DelayReplies(time.Second,
			zktest.Match{Op: zktest.OpGetData, Session: w.session(m).ID(), Path: path})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-read.Hit()
		read.Cancel()
		for _, node := range []string{path + "/by", path + "/at", path} {
			require.NoError(t, n.Delete(t.Context(), node, framework.AnyVersion))
		}
		require.NoError(t, counted())
		require.Equal(t, 1, remaining(t, b))
	})
}

// TestTooManyCountsAreReportedAfterLostReply, to the count or to the transaction that deletes it.
func TestTooManyCountsAreReportedAfterLostReply(t *testing.T) {
	for nth := 1; nth <= 2; nth++ {
		in(t, func(t *testing.T, w *world) {
			l := barrier.NewLatch(w.member("a").Client, path, 1)
			require.NoError(t, l.CountDown(t.Context(), "x"))
			f := w.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Path: path + "/by/y", Func: zktest.Request.Writes})
			require.ErrorIs(t, l.CountDown(t.Context(), "y"), barrier.ErrTooMany, nth)
			<-f.Hit()
			require.Equal(t, []string{"x"}, w.Children(path+"/by"))
			require.Len(t, w.Children(path+"/at"), 1)
			require.NoError(t, l.CountDown(t.Context(), "x"), "it has counted")
		})
	}
}

// The reply to the transaction that deletes a count too many is lost, and the latch is reset before
// the caller asks again.
func TestACountTooManyIsReportedAfterAReset(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 1), barrier.NewLatch(n.Client, path, 1)
		require.NoError(t, b.CountDown(t.Context(), "y"))
		require.Zero(t, remaining(t, a))
		lost := w.DropReply(2, zktest.Match{Op: zktest.OpMulti, Session: w.session(m).ID(),
			Func: zktest.Request.Writes})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-lost.Hit()
		m.Link.Cut()
		require.NoError(t, b.Reset(t.Context()))
		m.Link.Heal()
		require.ErrorIs(t, counted(), barrier.ErrTooMany)
		require.Equal(t, 1, remaining(t, b))
	})
}

// TestAnEarlierCountTooManyIsReportedAfterAReset: a call that has ended has left a count too many.
// The reply to the transaction with which the next call deletes it is lost.
func TestAnEarlierCountTooManyIsReportedAfterAReset(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, n := w.member("a"), w.member("b")
		a, b := barrier.NewLatch(m.Client, path, 1), barrier.NewLatch(n.Client, path, 1)
		require.NoError(t, b.CountDown(t.Context(), "y"))
		_, err := m.Multi(t.Context(), framework.CreateOp(path+"/by/x", nil, framework.Persistent),
			framework.CreateOp(path+"/at/c-", []byte("x"), framework.PersistentSequential))
		require.NoError(t, err)
		lost := w.DropReply(2, zktest.Match{Op: zktest.OpMulti, Session: w.session(m).ID(),
			Func: zktest.Request.Writes})
		_, counted := async(func() error { return a.CountDown(context.Background(), "x") })
		<-lost.Hit()
		m.Link.Cut()
		require.NoError(t, b.Reset(t.Context()))
		m.Link.Heal()
		require.ErrorIs(t, counted(), barrier.ErrTooMany)
		require.Equal(t, 1, remaining(t, b))
	})
}

// TestALatchOfManyLongIdsCanBeReset: all of its nodes go in one transaction, so an id that is too
// long for that is refused.
func TestALatchOfManyLongIdsCanBeReset(t *testing.T) {
	for name, path := range map[string]string{"short": "/l", "long": "/" + strings.Repeat("l", 250)} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				l := barrier.NewLatch(w.member("a").Client, path, 1000)
				id := func(n, length int) string { return fmt.Sprintf("%0*d", length, n) }
				long := 900
				for ; errors.Is(l.CountDown(t.Context(), id(0, long)), framework.ErrInvalid); long-- {
					require.Greater(t, long, 100, "any such id is short enough")
				}
				for n := 1; n < 1000; n++ {
					require.NoError(t, l.CountDown(t.Context(), id(n, long)))
				}
				require.NoError(t, l.Reset(t.Context()))
			})
		})
	}
}

// isSync reports whether a request is the transaction without effect of Session.Sync.
func isSync(r zktest.Request) bool {
	return len(r.Parts) == 1 && r.Parts[0].Path == path && !r.Writes()
}

func isNoSync(r zktest.Request) bool { return r.Op != zktest.OpMulti || r.Writes() }

// TestLatchWaitReadsAfterSync, or a server that lags behind would show the opening before a reset.
func TestLatchWaitReadsAfterSync(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		l := barrier.NewLatch(m.Client, path, 1)
		require.NoError(t, l.CountDown(t.Context(), "x"))
		var synced, looked bool
		stop := w.Observe(func(r zktest.Request) {
			looked = looked || r.Op == zktest.OpExists && strings.HasPrefix(r.Path, path+"/at/")
			synced = synced || !looked && isSync(r)
		})
		require.NoError(t, l.Wait(t.Context()))
		stop()
		require.True(t, looked && synced)
	})
}

func TestALatchWaitEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, barrier.NewLatch(m.Client, path, 1).Wait(ctx), context.DeadlineExceeded)
	})
}

func TestALatchOfAnotherNumber(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		require.NoError(t, barrier.NewLatch(m.Client, path, 2).CountDown(t.Context(), "x"))
		l := barrier.NewLatch(m.Client, path, 3)
		for _, err := range []error{l.CountDown(t.Context(), "y"), l.Wait(t.Context()), l.Reset(t.Context())} {
			var differs *barrier.MismatchError
			require.ErrorAs(t, err, &differs)
			require.Equal(t, barrier.MismatchError{Path: path, Stored: 2, Given: 3}, *differs)
		}
	})
}

// TestResetReportsPermanentRefusal: a quota is used up, or another program has put a node below a
// count.
func TestResetReportsPermanentRefusal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		l := barrier.NewLatch(m.Client, path, 1)
		require.NoError(t, l.CountDown(t.Context(), "x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, m.Create(t.Context(), path+"/by/x/other", nil, framework.Persistent))
		require.ErrorIs(t, l.Reset(ctx), framework.ErrForeign)
		require.NoError(t, m.Delete(t.Context(), path+"/by/x/other", framework.AnyVersion))
		quota := "/zookeeper/quota" + path
		require.NoError(t, m.MakeDirs(t.Context(), quota))
		require.NoError(t, m.Create(t.Context(), quota+"/zookeeper_stats", []byte("count=0,bytes=0"),
			framework.Persistent))
		require.NoError(t, m.Create(t.Context(), quota+"/zookeeper_limits",
			[]byte("count=-1,bytes=-1,countHardLimit=5"), framework.Persistent))
		require.ErrorIs(t, l.Reset(ctx), framework.ErrQuotaExceeded)
		require.Zero(t, remaining(t, l), "it was not reset")
		require.NoError(t, m.Delete(t.Context(), quota+"/zookeeper_limits", framework.AnyVersion))
		require.NoError(t, l.Reset(ctx))
	}, zktest.WithEnforcedQuotas())
}

// TestResetBesideCountTooMany: a count that is one too many comes after the reset has listed the
// counts.
func TestResetBesideCountTooMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		l := barrier.NewLatch(m.Client, path, 1)
		require.NoError(t, l.CountDown(t.Context(), "x"))
		listed, lists := make(chan struct{}), 0
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpGetChildren2 {
				if lists++; lists == 2 {
					close(listed)
				}
			}
		})()
		m.Link.Delay(50 * time.Millisecond)
		_, reset := async(func() error { return l.Reset(t.Context()) })
		<-listed
		require.NoError(t, w.member("b").Create(t.Context(), path+"/by/y", nil, framework.Persistent))
		require.NoError(t, reset())
		require.Empty(t, w.Children(path+"/by"))
	})
}

func TestUnknownFieldsOfALatchSurviveReset(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		l := barrier.NewLatch(m.Client, path, 1)
		require.NoError(t, l.CountDown(t.Context(), "x"))
		later := `{"v":1,"kind":"latch","size":1,"label":{"a":[1]}}`
		_, err := m.Set(t.Context(), path, []byte(later), framework.AnyVersion)
		require.NoError(t, err)
		require.NoError(t, l.Reset(t.Context()))
		n, _ := w.Node(path)
		require.Equal(t, later, string(n.Data))
	})
}

// TestALatchThatIsCreatedAgainHasNotOpened: a waiter does not see the deletion. The former latch
// was reset before, so that the versions of the records differ.
func TestALatchThatIsCreatedAgainHasNotOpened(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 3 * timeout} {
		in(t, func(t *testing.T, w *world) {
			m, n := w.member("a"), w.member("b")
			a, b := barrier.NewLatch(m.Client, path, 2), barrier.NewLatch(n.Client, path, 2)
			for range 3 {
				require.NoError(t, b.CountDown(t.Context(), "x"))
				require.NoError(t, b.CountDown(t.Context(), "y"))
				require.NoError(t, b.Reset(t.Context()))
			}
			over, waited := async(func() error { return a.Wait(context.Background()) })
			require.False(t, over())
			m.Link.Cut()
			for _, node := range []string{path + "/by", path + "/at", path} {
				require.NoError(t, n.Delete(t.Context(), node, framework.AnyVersion))
			}
			require.NoError(t, b.CountDown(t.Context(), "x"))
			time.Sleep(away)
			m.Link.Heal()
			time.Sleep(timeout)
			require.False(t, over(), "one count is missing")
			require.NoError(t, b.CountDown(t.Context(), "y"))
			require.NoError(t, waited())
		})
	}
}
