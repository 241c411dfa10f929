package election_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// reigns leads until ctx ends, and tells when it begins and ends.
func reigns(ctx context.Context, e *election.Election) (began <-chan *election.Term, ended <-chan error) {
	b, d := make(chan *election.Term, 100), make(chan error, 100)
	go func() {
		_ = e.Lead(ctx, func(ctx context.Context, term *election.Term) error {
			b <- term
			<-ctx.Done()
			d <- context.Cause(ctx)
			return nil
		})
	}()
	synctest.Wait()
	return b, d
}

func TestAPreferredCandidateTakesOverAfterItsStablePeriod(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a"), w.member("b"), w.member("c")
		plain, ended := reigns(t.Context(), a.Election)
		reigns(t.Context(), b.Election)
		got(t, plain)
		preferred := election.New(c.client, path, election.WithPriority(10, 30*time.Second))
		came := time.Now()
		leads, _ := reigns(t.Context(), preferred)
		all, err := a.Candidates(t.Context())
		require.NoError(t, err)
		require.Equal(t, 10, all[2].Priority)
		term := got(t, leads)
		require.Equal(t, 30*time.Second, time.Since(came))
		require.EqualValues(t, 2, term.Number(), "past who came before")
		require.ErrorIs(t, got(t, ended), election.ErrTransferred)
		time.Sleep(time.Hour)
		require.NoError(t, term.Err(), "nobody takes over from it")
		require.ElementsMatch(t, []string{"c", "b", "a"}, ids(t, a.Election))
	})
}

func TestAPreferredCandidateThatDoesNotStayIsNotWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c := w.member("a"), w.member("c")
		plain, _ := reigns(t.Context(), a.Election)
		term := got(t, plain)
		preferred := election.New(c.client, path, election.WithPriority(10, 30*time.Second))
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, err := preferred.Campaign(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			time.Sleep(20 * time.Second)
		}
		require.NoError(t, term.Err())
	})
}

func TestTheMostPreferredTakesOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		plain, _ := reigns(t.Context(), election.New(w.member("a").client, path, election.WithMinTerm(time.Minute)))
		got(t, plain)
		leads := map[string]<-chan *election.Term{}
		for id, p := range map[string]int{"low": 1, "high": 7, "mid": 5, "high2": 7} {
			leads[id], _ = reigns(t.Context(),
				election.New(w.member(id).client, path, election.WithPriority(p, time.Second)))
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, "a", ids(t, w.member("o").Election)[0], "its term has a least time")
		time.Sleep(time.Minute)
		require.Contains(t, []string{"high", "high2"}, ids(t, w.member("p").Election)[0])
		require.Zero(t, len(leads["low"])+len(leads["mid"]))
	})
}

// TestAPreferredNodeOutsideTheLineKeepsNobodyOut leaves a node below ~waiting whose candidate never
// joins the line.
func TestAPreferredNodeOutsideTheLineKeepsNobodyOut(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, hung := w.member("a"), w.member("hung")
		plain, _ := reigns(t.Context(), a.Election)
		got(t, plain)
		require.NoError(t, hung.client.MakeDirs(t.Context(), path+"~waiting"))
		require.NoError(t, hung.client.Create(t.Context(), path+"~waiting/_c_0-p900", []byte(`{"v":1,"id":"hung"}`),
			framework.Ephemeral))
		began := time.Now()
		leads, _ := reigns(t.Context(),
			election.New(w.member("low").client, path, election.WithPriority(10, time.Second)))
		got(t, leads)
		require.Less(t, time.Since(began), 5*time.Second)

		top, _ := reigns(t.Context(),
			election.New(hung.client, path, election.WithID("hung"), election.WithPriority(900, 0)))
		require.Equal(t, "hung", got(t, top).ID(), "the one that joins takes over")
	})
}

func TestAPreferredCandidateOutlivesItsSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c := w.member("a"), w.member("c")
		plain, _ := reigns(t.Context(), a.Election)
		got(t, plain)
		leads, _ := reigns(t.Context(), election.New(c.client, path, election.WithPriority(10, time.Minute)))
		time.Sleep(30 * time.Second)
		s, err := c.client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Expire(s.ID()))
		began := time.Now()
		got(t, leads)
		require.GreaterOrEqual(t, time.Since(began), time.Minute, "it was gone")
		require.Less(t, time.Since(began), time.Minute+timeout)
	})
}

func TestASickCandidateStaysOutAndASickLeaderStepsDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		var sick, asked atomic.Int64
		sick.Store(1)
		weak := errors.New("the disk is full")
		e := election.New(a.client, path, election.WithHealth(func(context.Context) error {
			asked.Add(1)
			if sick.Load() != 0 {
				return weak
			}
			return nil
		}, time.Second))
		began, ended := reigns(t.Context(), e)
		time.Sleep(10*time.Second + time.Millisecond)
		require.Empty(t, w.Children(path), "sick")
		require.EqualValues(t, 11, asked.Load())
		sick.Store(0)
		term := got(t, began)
		won := campaign(t, b.Election)
		sick.Store(1)
		fell := time.Now()
		next := got(t, won)
		require.LessOrEqual(t, time.Since(fell), time.Second)
		cause := got(t, ended)
		require.ErrorIs(t, cause, election.ErrUnhealthy)
		require.ErrorIs(t, cause, weak)
		require.ErrorIs(t, term.Err(), weak)
		sick.Store(0)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"b", "a"}, ids(t, b.Election))
		sick.Store(1)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"b"}, ids(t, b.Election), "it leaves the line too")
		sick.Store(0)
		require.NoError(t, next.Resign(t.Context()))
		got(t, began)
	})
}

func TestACheckThatHangsIsAFailureAndIsAskedOnceAtATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		release := make(chan struct{})
		var hang atomic.Bool
		var asked atomic.Int64
		e := election.New(a.client, path, election.WithHealth(func(context.Context) error {
			if asked.Add(1) > 1 && hang.Load() {
				<-release
			}
			return nil
		}, time.Second))
		began, ended := reigns(t.Context(), e)
		got(t, began)
		hang.Store(true)
		require.ErrorContains(t, got(t, ended), "no answer within 1s")
		before := asked.Load()
		time.Sleep(time.Minute)
		require.Equal(t, before, asked.Load())
		hang.Store(false)
		close(release)
		got(t, began)
	})
}

// TestACheckThatPanicsIsAFailure, also one that ends its goroutine.
func TestACheckThatPanicsIsAFailure(t *testing.T) {
	for says, fail := range map[string]func(){"no disk": func() { panic("no disk") }, "Goexit": runtime.Goexit} {
		in(t, func(t *testing.T, w *world) {
			a := w.member("a")
			var sick atomic.Bool
			e := election.New(a.client, path, election.WithHealth(func(context.Context) error {
				if sick.Load() {
					fail()
				}
				return nil
			}, time.Second))
			began, ended := reigns(t.Context(), e)
			got(t, began)
			sick.Store(true)
			err := got(t, ended)
			require.ErrorIs(t, err, election.ErrUnhealthy)
			require.ErrorIs(t, err, framework.ErrPanic)
			require.ErrorContains(t, err, says)
			sick.Store(false)
			got(t, began)
		})
	}
}

// TestCampaignsOfOneElectionShareTheirChecks: each check answers well within the period, however
// many campaigns need one.
func TestCampaignsOfOneElectionShareTheirChecks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var running atomic.Int64
		e := election.New(w.member("a").client, path, election.WithHealth(func(context.Context) error {
			if running.Add(1) > 1 {
				t.Error("two checks at once")
			}
			time.Sleep(600 * time.Millisecond)
			running.Add(-1)
			return nil
		}, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		term, err := e.Campaign(ctx)
		require.NoError(t, err)
		others, stop := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() { _, _ = e.Campaign(others) })
		}
		time.Sleep(30 * time.Second)
		require.NoError(t, term.Err())
		stop()
		waiting.Wait()
		require.NoError(t, term.Resign(t.Context()))
		time.Sleep(time.Second) // the check that runs returns
	})
}

// TestTheEndOfACampaignFailsNoCheckOfAnother: the call that a campaign has begun goes on for the
// others that wait for its answer.
func TestTheEndOfACampaignFailsNoCheckOfAnother(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked atomic.Int64
		canceled := make(chan struct{})
		e := election.New(w.member("a").client, path, election.WithHealth(func(ctx context.Context) error {
			asked.Add(1)
			select {
			case <-time.After(600 * time.Millisecond):
				return nil
			case <-ctx.Done():
				close(canceled)
				return ctx.Err()
			}
		}, time.Second))
		first, endFirst := context.WithCancel(t.Context())
		second, endSecond := context.WithCancel(t.Context())
		var campaigns sync.WaitGroup
		campaigns.Go(func() {
			_, err := e.Campaign(first)
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		began := time.Now()
		won := make(chan *election.Term, 1)
		campaigns.Go(func() {
			term, err := e.Campaign(second)
			require.NoError(t, err)
			won <- term
		})
		synctest.Wait()
		endFirst()
		term := got(t, won)
		require.Less(t, time.Since(began), time.Second)
		require.EqualValues(t, 1, asked.Load(),
			"the second campaign has had its answer from the check of the first one")
		time.Sleep(time.Second) // into the term's next check
		require.NoError(t, term.Resign(t.Context()))
		got(t, canceled) // nobody waits for that answer any more
		endSecond()
		campaigns.Wait()
	})
}

func TestATermHasALeastAndAGreatestLength(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		e := election.New(a.client, path, election.WithMinTerm(time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		done := make(chan error)
		go func() {
			done <- e.Lead(ctx, func(context.Context, *election.Term) error { calls.Add(1); return nil })
		}()
		synctest.Wait()
		began := time.Now()
		won := campaign(t, election.New(b.client, path, election.WithMaxTerm(10*time.Second)))
		term := got(t, won)
		require.Equal(t, time.Minute, time.Since(began))
		<-term.Context().Done()
		require.Equal(t, 70*time.Second, time.Since(began))
		require.ErrorIs(t, term.Err(), locks.ErrMaxHold)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, calls.Load(), "the place is kept until it is given up")
		require.NoError(t, term.Resign(t.Context()))
		synctest.Wait()
		require.EqualValues(t, 2, calls.Load())
		before := time.Now()
		cancel()
		require.NoError(t, got(t, done))
		require.Equal(t, before, time.Now(), "the end does not wait")
	})
}

func TestAFailedLeaderIsNotKeptForTheLeastTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		go func() {
			_ = election.New(a.client, path, election.WithMinTerm(time.Hour)).Lead(t.Context(),
				func(ctx context.Context, _ *election.Term) error {
					time.Sleep(time.Second)
					return errors.New("failed")
				})
		}()
		synctest.Wait()
		began := time.Now()
		b.lead(t)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestStepDown(t *testing.T) {
	for when, wants := range map[election.StepDown]error{election.AtSuspended: election.ErrDisconnected,
		election.AtLeaseEnd: framework.ErrSessionLost} {
		in(t, func(t *testing.T, w *world) {
			a := w.member("a")
			began, ended := reigns(t.Context(), election.New(a.client, path, election.WithStepDown(when)))
			first := got(t, began)
			time.Sleep(time.Minute)
			a.link.Reset()
			time.Sleep(time.Second)
			require.Equal(t, when == election.AtSuspended, first.Err() != nil)
			if when == election.AtSuspended {
				require.ErrorIs(t, got(t, ended), election.ErrDisconnected)
				first = got(t, began)
				require.EqualValues(t, 2, first.Number(), "it leads again by itself")
			}
			a.link.Cut()
			cut := time.Now()
			require.ErrorIs(t, got(t, ended), wants)
			if when == election.AtSuspended {
				require.Less(t, time.Since(cut), timeout/2)
			}
			a.link.Heal()
			require.NoError(t, got(t, began).Err())
		})
	}
}

// In few of these worlds the leader looks at its session only when that is connected again.
func TestALeaderStepsDownHoweverSoonTheConnectionIsBack(t *testing.T) {
	for range 300 {
		in(t, func(t *testing.T, w *world) {
			a := w.member("a")
			term, err := election.New(a.client, path, election.WithStepDown(election.AtSuspended)).Campaign(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Minute)
			a.link.Reset()
			time.Sleep(time.Minute)
			require.ErrorIs(t, term.Err(), election.ErrDisconnected)
			require.NoError(t, term.Resign(t.Context()))
		})
	}
}

// TestWritesOfALeaderThatSteppedDownFail: such a write was not sent, and no next try can succeed.
// So it does not say that its outcome is unknown, and Update does not try again.
func TestWritesOfALeaderThatSteppedDownFail(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		term, err := election.New(a.client, path, election.WithStepDown(election.AtSuspended)).Campaign(t.Context())
		require.NoError(t, err)
		a.link.Reset()
		<-term.Context().Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for name, write := range map[string]func() error{
			"SetMetadata": func() error { return term.SetMetadata(ctx, map[string]string{"a": "b"}) },
			"Multi": func() error {
				_, err := a.client.Multi(ctx, term.Guard(), framework.CreateOp("/n", nil, framework.Persistent))
				return err
			},
		} {
			err := write()
			require.ErrorIs(t, err, election.ErrDisconnected, name)
			require.NotErrorIs(t, err, framework.ErrSuspended, name)
		}
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestIdleCandidatesAskNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		leads, _ := reigns(t.Context(), a.Election)
		got(t, leads)
		for _, id := range []string{"b", "c", "d"} {
			reigns(t.Context(), election.New(w.member(id).client, path, election.WithPriority(0, 0),
				election.WithMetadata(map[string]string{"a": "b"}),
				election.WithHealth(func(context.Context) error { return nil }, time.Second)))
		}
		time.Sleep(time.Minute)
		count := func() (n int64) {
			for op, times := range w.Requests() {
				if op != zktest.OpPing && op != zktest.OpSync && op != zktest.OpMulti { // proofs of life
					n += times
				}
			}
			return n
		}
		before := count()
		time.Sleep(time.Hour)
		require.Equal(t, before, count())
	})
}

func TestTheSelectorsLayout(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		term, err := election.New(a.client, path, election.WithSelectorLayout(),
			election.WithID("x")).Campaign(t.Context())
		require.NoError(t, err)
		name := w.Children(path)[0]
		require.Regexp(t, `^_c_[0-9a-f-]{36}-lock-\d{10}$`, name)
		n, _ := w.Node(znode.Join(path, name))
		require.Equal(t, "x", string(n.Data))
		_, err = b.Campaign(t.Context())
		require.ErrorContains(t, err, "another kind")
		require.NoError(t, term.Err())
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	c, err := framework.New(framework.Config{Servers: []string{"192.0.2.1"}})
	require.NoError(t, err)
	ok := func(context.Context) error { return nil }
	for says, o := range map[string][]election.Option{
		"WithID: the id is empty": {election.WithID("")},
		"at most 65536": {
			election.WithMetadata(map[string]string{"a": strings.Repeat("x", 65<<10)})},
		"key of \"x\" is empty": {election.WithMetadata(map[string]string{"": "x"})},
		"-1 is not between":     {election.WithPriority(-1, 0)},
		"1001 is not between":   {election.WithPriority(1001, 0)},
		"-1s is not between":    {election.WithPriority(1, -time.Second)},
		"the check is nil":      {election.WithHealth(nil, time.Second)},
		"a period of 0s":        {election.WithHealth(ok, 0)},
		"a period of -1s":       {election.WithHealth(ok, -time.Second)},
		"WithMinTerm: 0s":       {election.WithMinTerm(0)},
		"WithMaxTerm: -1s":      {election.WithMaxTerm(-time.Second)},
		"1s is less than WithMinTerm's 2s": {election.WithMaxTerm(time.Second),
			election.WithMinTerm(2 * time.Second)},
		"WithStepDown: there is no policy 17": {election.WithStepDown(17)},
	} {
		require.ErrorContains(t, moduleonly.CheckElectionOptions(o), says)
		e := election.New(c, path, o...)
		_, err := e.Campaign(t.Context())
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, e.Lead(t.Context(), func(context.Context, *election.Term) error { return nil }), says)
	}
	require.NoError(t, c.Close(t.Context()))
}
