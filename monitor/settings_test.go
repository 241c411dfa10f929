package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSettingsSetTheOptions: each field, and the rest keeps its default.
func TestSettingsSetTheOptions(t *testing.T) {
	numbers := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	n := func(i int) *int { return &numbers[i-1] }
	d := func(d time.Duration) *time.Duration { return &d }
	all := Settings{Interval: d(time.Second), BeginAfter: n(1), EndAfter: n(2), Waiters: n(3), LongHold: d(2),
		SilentHolder: d(6), JobFailures: n(4), OldItem: d(3), FailingItem: n(5), HeldItem: d(4), DeadLetters: n(6),
		SessionBytes: n(7), FailedRuns: n(9), UntakenRun: d(5),
		GrowthScans: n(8), GrowthItems: n(9), Without: []string{string(ProblemUnread)}}
	got, err := newSettings([]Option{WithSettings(all)})
	require.NoError(t, err)
	want, err := newSettings([]Option{WithInterval(time.Second), WithHysteresis(1, 2), WithWaiters(3), WithLongHold(2),
		WithSilentHolder(6), WithJobFailures(4), WithOldItem(3), WithFailingItem(5), WithHeldItem(4),
		WithDeadLetters(6),
		WithSessionBytes(7), WithFailedRuns(9), WithUntakenRun(5),
		WithGrowth(8, 9), WithoutProblems(ProblemUnread)})
	require.NoError(t, err)
	require.Equal(t, want, got)

	got, err = newSettings([]Option{WithSettings(Settings{EndAfter: n(9)})})
	require.NoError(t, err)
	want, err = newSettings([]Option{WithHysteresis(2, 9)})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestBadSettings(t *testing.T) {
	zero, short := 0, time.Millisecond
	for says, s := range map[string]Settings{
		"WithInterval: 1ms, it must be at least 1s":          {Interval: &short},
		"WithHysteresis: 0, it must be at least 1":           {EndAfter: &zero},
		"WithGrowth: 0, it must be at least 1":               {GrowthItems: &zero},
		`Without: "gone" is no problem that a monitor finds`: {Without: []string{"gone"}},
	} {
		_, err := newSettings([]Option{WithSettings(s)})
		require.ErrorIs(t, err, errOption)
		require.ErrorContains(t, err, says)
	}
}
