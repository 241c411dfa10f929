package scheduler

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestBriefServerClockErrorHoldsTicksBriefly(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		in(t, func(t *testing.T, w *world) {
			a := w.start("a", jobs("j", "* * * * *", quick))
			time.Sleep(5*time.Minute + time.Second)
			a.stop()
			require.NoError(t, <-a.done)
			w.Skew(skew)
			w.start("b", jobs("j", "* * * * *", quick))
			time.Sleep(5 * time.Second)
			w.Skew(0)
			time.Sleep(30 * time.Minute)
			for _, e := range w.log.all(EventStarted) {
				require.LessOrEqual(t, e.when.Sub(e.Run.Tick).Abs(), 15*time.Second, "by the true time, %v", skew)
			}
			require.Len(t, w.log.ticks(), 35)
			require.Empty(t, w.requireBalanced("j", "* * * * *").Missed)
		})
	}
}

// No write is made between two ticks of an hour, in which the machine is suspended: what has passed
// by its monotonic clock is less than by the ensemble's.
func TestAnOldEstimateOfTheEnsemblesClockIsMadeAnewBeforeATickWaits(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		began := time.Now()
		now := func() time.Time { return time.Now().Add(30 * time.Minute) }
		w.Skew(30 * time.Minute)
		a := w.start("a", jobs("j", "0 * * * *", quick), WithNow(now))
		a.participation.currentSession().ownership.clock.recordAnswer(now().Add(-time.Hour), time.Now())
		time.Sleep(31 * time.Minute)
		require.Equal(t, []string{"01:00:00"}, w.log.ticks())
		require.Less(t, w.log.all(EventStarted)[0].when.Sub(began), 30*time.Minute+time.Second)
		require.Empty(t, w.log.all(EventAhead), "it was not the clock's fault")
	})
}

func TestEnsembleClockDecidesForMemberWithSlowClock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		slow := func() time.Time { return time.Now().Add(-2 * time.Hour) }
		w.start("a", jobs("j", "*/10 * * * *", quick), WithNow(slow))
		time.Sleep(119 * time.Minute)
		require.Len(t, w.log.ticks(), 11)
		for i, e := range w.log.all(EventStarted) {
			late := e.when.Sub(e.Run.Tick)
			require.GreaterOrEqual(t, late, MaxAhead)
			if i > 0 {
				require.LessOrEqual(t, late, 2*MaxAhead, "later ones do not wait for a minute")
			}
		}
		told := w.log.all(EventBehind)
		require.NotEmpty(t, told)
		require.Equal(t, "00:10:00", told[0].Run.Tick.Format(time.TimeOnly))
		require.ErrorContains(t, told[0].Err,
			"this machine's clock is 2h0m0s behind the ensemble's: which of them is wrong cannot be told")
		require.Empty(t, w.requireBalanced("j", "*/10 * * * *").Missed)
	})
}

func TestClockEventNamesTheClockThatWasSet(t *testing.T) {
	for _, c := range []struct {
		machine, ensemble time.Duration
		want              string
	}{
		{time.Hour, 0, "1h0m0s ahead of the ensemble's: this machine's was set"},
		{-time.Hour, 0, "1h0m0s behind the ensemble's: this machine's was set"},
		{0, -time.Hour, "1h0m0s ahead of the ensemble's: the ensemble's was set"},
		{0, time.Hour, "1h0m0s behind the ensemble's: the ensemble's was set"},
	} {
		in(t, func(t *testing.T, w *world) {
			var machine time.Duration
			cl := &tickClock{local: func() time.Time { return time.Now().Add(machine) }}
			cl.recordAnswer(time.Now().Add(3*time.Second), time.Now())
			time.Sleep(time.Minute)
			machine = c.machine
			cl.recordAnswer(time.Now().Add(c.ensemble), time.Now())
			require.ErrorContains(t, cl.differenceError(), c.want)
		})
	}
}

// The ensemble's clock is ahead for less than a minute, again and again: no tick is run before its
// time.
func TestSlowMachineClockIsReportedAfterAMinute(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := &tickClock{local: time.Now}
		for range 5 {
			for range 5 {
				c.recordAnswer(time.Now().Add(time.Hour), time.Now())
				require.Equal(t, time.Now(), c.now())
				time.Sleep(askTimeAfter)
			}
			c.recordAnswer(time.Now(), time.Now())
			time.Sleep(askTimeAfter)
		}
		c.recordAnswer(time.Now().Add(time.Hour), time.Now())
		time.Sleep(behindAfter)
		require.Equal(t, time.Now(), c.now(), "one answer is not enough")
		c.recordAnswer(time.Now().Add(time.Hour), time.Now())
		require.Equal(t, time.Now().Add(time.Hour-MaxAhead), c.now())
		time.Sleep(2 * askTimeAfter)
		require.Equal(t, time.Now(), c.now(), "an old answer is not either")
	})
}

// The answer to the write that tells the time is lost, and others write the same node, so that
// nobody can tell whose write it shows.
func TestTheEnsemblesTimeIsAskedForAgainWhenTheOutcomeIsUnknown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", nil), w.member("b", nil)
		session, err := a.client.Session(t.Context())
		require.NoError(t, err)
		a.link.Delay(100 * time.Millisecond)
		lost := w.DropReply(1, zktest.Match{Op: zktest.OpSetData, Path: testPath + "/jobs"})
		var others sync.WaitGroup
		others.Go(func() {
			<-lost.Hit()
			for range 400 {
				_, err := b.client.Set(context.Background(), testPath+"/jobs", nil, framework.AnyVersion)
				require.NoError(t, err)
				time.Sleep(10 * time.Millisecond)
			}
		})
		now, err := a.store.ensembleTime(t.Context(), session)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, 200*time.Millisecond)
		others.Wait()
	})
}
