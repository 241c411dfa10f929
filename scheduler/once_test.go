package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAJobAtATimeRunsOnce, also when its members die before, and when it is registered again.
func TestAJobAtATimeRunsOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: At(time.Now().Add(time.Hour + time.Nanosecond)), Run: quick})
		a := w.start("a", job)
		b := w.start("b", job)
		time.Sleep(30 * time.Minute)
		a.kill()
		time.Sleep(time.Hour)
		require.Equal(t, []string{"01:00:00"}, w.log.ticks())
		c := w.start("c", job)
		time.Sleep(48 * time.Hour)
		require.Len(t, w.log.ticks(), 1)
		b.kill()
		c.kill()
		time.Sleep(24 * time.Hour)
		report, err := w.member("d", nil).Inspect(t.Context(), "j")
		require.NoError(t, err)
		require.Empty(t, report.Members)
		require.Zero(t, report.Next(time.Now()))
		require.Empty(t, report.Findings, "nobody has to run it any more")
		require.NoError(t, w.member("e", nil).Trigger(t.Context(), "j"))
		report, err = w.member("f", nil).Inspect(t.Context(), "j")
		require.NoError(t, err)
		require.Len(t, report.Findings, 1, "a run waits for a member")
	})
}

// TestAJobAtATimeRunsLateOnce if no member was there at its time.
func TestAJobAtATimeRunsLateOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: At(time.Now().Add(time.Hour)), Run: quick})
		a := w.start("a", job)
		time.Sleep(time.Minute)
		a.kill()
		time.Sleep(90 * time.Minute)
		w.start("b", job)
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"01:00:00"}, w.log.ticks())
	})
}

// TestAJobThatIsRegisteredAfterItsTimeDoesNotRun, and can be triggered. It may be as long ago as
// the earliest time that a spec may have. A later release may be started with it, too.
func TestAJobThatIsRegisteredAfterItsTimeDoesNotRun(t *testing.T) {
	inDays(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: At(time.Now()), Run: quick}) // the bubble's clock begins with the year 2000
		time.Sleep(2 * time.Hour)
		a := w.start("a", job)
		time.Sleep(24 * time.Hour)
		require.Empty(t, w.log.ticks())
		require.NoError(t, a.Trigger(t.Context(), "j"))
		time.Sleep(time.Minute)
		require.Len(t, w.log.ticks(), 1)
		b := w.start("b", job)
		a.stop()
		require.NoError(t, <-a.done)
		time.Sleep(24 * time.Hour)
		b.stop()
		require.NoError(t, <-b.done)
		require.Len(t, w.log.ticks(), 1)
	})
}
