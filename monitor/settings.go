package monitor

import (
	"fmt"
	"slices"
	"time"
)

// Settings are the options of a monitor that an operator may set, for example in a file: see
// package configfile. A field that is nil leaves the default.
type Settings struct {
	// Interval is the time of WithInterval.
	Interval *time.Duration
	// BeginAfter and EndAfter are the scans of WithHysteresis.
	BeginAfter, EndAfter *int
	// Waiters, LongHold, SilentHolder, JobFailures, OldItem, FailingItem, HeldItem, DeadLetters,
	// FailedRuns, UntakenRun and SessionBytes are the thresholds of the options of these names.
	Waiters      *int
	LongHold     *time.Duration
	SilentHolder *time.Duration
	JobFailures  *int
	OldItem      *time.Duration
	FailingItem  *int
	HeldItem     *time.Duration
	DeadLetters  *int
	FailedRuns   *int
	UntakenRun   *time.Duration
	SessionBytes *int
	// GrowthScans and GrowthItems are those of WithGrowth.
	GrowthScans, GrowthItems *int
	// Without are the problems that the monitor ignores: the texts of constants of Problem.
	Without []string
}

// WithSettings sets what the settings have. An error is that of the option of the first field that
// cannot be used.
func WithSettings(given Settings) Option {
	return func(s *settings) error {
		var opts []Option
		number := func(n *int, option func(int) Option) {
			if n != nil {
				opts = append(opts, option(*n))
			}
		}
		duration := func(d *time.Duration, option func(time.Duration) Option) {
			if d != nil {
				opts = append(opts, option(*d))
			}
		}
		duration(given.Interval, WithInterval)
		number(given.BeginAfter, func(n int) Option { return WithHysteresis(n, s.endAfter) })
		number(given.EndAfter, func(n int) Option {
			return func(s *settings) error { return WithHysteresis(s.beginAfter, n)(s) }
		})
		number(given.Waiters, WithWaiters)
		duration(given.LongHold, WithLongHold)
		duration(given.SilentHolder, WithSilentHolder)
		number(given.JobFailures, WithJobFailures)
		duration(given.OldItem, WithOldItem)
		number(given.FailingItem, WithFailingItem)
		duration(given.HeldItem, WithHeldItem)
		number(given.DeadLetters, WithDeadLetters)
		number(given.FailedRuns, WithFailedRuns)
		duration(given.UntakenRun, WithUntakenRun)
		number(given.SessionBytes, WithSessionBytes)
		number(given.GrowthScans, func(n int) Option { return WithGrowth(n, s.growthItems) })
		number(given.GrowthItems, func(n int) Option {
			return func(s *settings) error { return WithGrowth(s.growthScans, n)(s) }
		})
		for _, text := range given.Without {
			if !slices.Contains(problems, Problem(text)) {
				return fmt.Errorf("%w: Without: %q is no problem that a monitor finds", errOption, text)
			}
			opts = append(opts, WithoutProblems(Problem(text)))
		}
		for _, set := range opts {
			if err := set(s); err != nil {
				return err
			}
		}
		return nil
	}
}
