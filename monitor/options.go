package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Option changes which problems a monitor finds and how it reports them. Run and Check return the
// error of an option; it wraps framework.ErrInvalid.
type Option func(*settings) error

// settings are the values of the options.
type settings struct {
	interval      time.Duration
	beginAfter    int // scans in a row
	endAfter      int // scans in a row
	waiters       int
	longHold      time.Duration
	silentHolder  time.Duration
	jobFailures   int
	oldItem       time.Duration
	failingItem   int
	heldItem      time.Duration
	deadLetters   int
	failedRuns    int
	untakenRun    time.Duration
	growthScans   int
	growthItems   int
	sessionBytes  int
	without       []Problem
	onEvent       func(context.Context, Event) error
	eventTimeout  time.Duration
	eventAttempts int
}

func newSettings(opts []Option) (settings, error) {
	return recipe.ApplyOptions(settings{
		interval: 30 * time.Second, beginAfter: 2, endAfter: 2, waiters: 10, longHold: 5 * time.Minute,
		silentHolder: time.Minute, jobFailures: 1,
		oldItem:     time.Hour,
		failingItem: DefaultFailingItem, heldItem: DefaultHeldItem, untakenRun: 5 * time.Minute,
		growthScans: 10, growthItems: 100, sessionBytes: DefaultSessionBytes, eventAttempts: 3,
	}, opts)
}

// DefaultEventTimeout is a timeout for WithOnEvent that suits most programs.
const DefaultEventTimeout = 30 * time.Second

// DefaultSessionBytes is what WithSessionBytes sets by default. framework.Config.MaxEphemeralBytes
// is 900,000 by default.
const DefaultSessionBytes = 700_000

// DefaultFailingItem is what WithFailingItem sets by default.
const DefaultFailingItem = 5

// DefaultHeldItem is what WithHeldItem sets by default.
const DefaultHeldItem = 5 * time.Minute

// atLeast returns an option that calls set, or an error if value is below least.
func atLeast[N int | time.Duration](option string, value, least N, set func(*settings)) Option {
	return func(s *settings) error {
		if value < least {
			return fmt.Errorf("%w: %s: %v, it must be at least %v", errOption, option, value, least)
		}
		set(s)
		return nil
	}
}

// WithInterval sets the time from the begin of a scan to the begin of the next. Default 30 s, at
// least 1 s. A scan that takes longer delays the next one.
func WithInterval(d time.Duration) Option {
	return atLeast("WithInterval", d, time.Second, func(s *settings) { s.interval = d })
}

// WithHysteresis sets how many scans in a row must see a problem before its finding begins, and how
// many scans in a row must not see it before the finding ends. Default 2 and 2, at least 1.
func WithHysteresis(beginAfter, endAfter int) Option {
	return atLeast("WithHysteresis", min(beginAfter, endAfter), 1,
		func(s *settings) { s.beginAfter, s.endAfter = beginAfter, endAfter })
}

// WithWaiters sets how many contenders may wait for a lock: ProblemWaiters begins with one more.
// Default 10.
func WithWaiters(n int) Option {
	return atLeast("WithWaiters", n, 0, func(s *settings) { s.waiters = n })
}

// WithLongHold sets how long a lock may be held while others wait for it. Default 5 minutes.
func WithLongHold(d time.Duration) Option {
	return atLeast("WithLongHold", d, 1, func(s *settings) { s.longHold = d })
}

// WithSilentHolder sets how long a holder may go on after an operator has asked it to release the
// lock. Default 1 minute. Set it to the time that your holders need to end their work.
func WithSilentHolder(d time.Duration) Option {
	return atLeast("WithSilentHolder", d, 1, func(s *settings) { s.silentHolder = d })
}

// WithJobFailures makes scheduler.ProblemFailed a finding only when the latest n ended runs of the
// job have all failed. Default 1. Do not set n above the number of runs that the job's scheduler
// keeps (scheduler.WithHistory, 10 by default): the finding would not begin.
func WithJobFailures(n int) Option {
	return atLeast("WithJobFailures", n, 1, func(s *settings) { s.jobFailures = n })
}

// WithOldItem sets how old an item at the head of a queue may be. Default 1 hour.
func WithOldItem(d time.Duration) Option {
	return atLeast("WithOldItem", d, 1, func(s *settings) { s.oldItem = d })
}

// WithFailingItem sets how many attempts an item of a queue must have behind it to be a finding.
// Default 5, at least 1.
func WithFailingItem(n int) Option {
	return atLeast("WithFailingItem", n, 1, func(s *settings) { s.failingItem = n })
}

// WithHeldItem sets for how long a consumer may have an item of a queue. Default 5 minutes. Set it
// above the longest time that your consumers work on an item.
func WithHeldItem(d time.Duration) Option {
	return atLeast("WithHeldItem", d, 1, func(s *settings) { s.heldItem = d })
}

// WithDeadLetters sets how many dead letters a queue may have. Default 0.
func WithDeadLetters(n int) Option {
	return atLeast("WithDeadLetters", n, 0, func(s *settings) { s.deadLetters = n })
}

// WithFailedRuns sets how many failed runs the Workflows at a path may have. Default 0.
func WithFailedRuns(n int) Option {
	return atLeast("WithFailedRuns", n, 0, func(s *settings) { s.failedRuns = n })
}

// WithUntakenRun sets for how long a run that could go on may be without a member, from the latest
// change of its record: a run whose member has died after that time counts at once, until another
// member takes it. Default 5 minutes.
func WithUntakenRun(d time.Duration) Option {
	return atLeast("WithUntakenRun", d, 1, func(s *settings) { s.untakenRun = d })
}

// WithGrowth sets when a growing queue is a finding: each of this many scans in a row has found
// more items than the scan before, and the queue has at least this many items. Default 10 scans and
// 100 items.
func WithGrowth(scans, items int) Option {
	return atLeast("WithGrowth", min(scans, items), 1,
		func(s *settings) { s.growthScans, s.growthItems = scans, items })
}

// WithSessionBytes sets how many bytes the paths of one session's nodes in locks, elections and
// claims may have together. Default 700,000.
func WithSessionBytes(n int) Option {
	return atLeast("WithSessionBytes", n, 1, func(s *settings) { s.sessionBytes = n })
}

// WithoutProblems makes a monitor ignore these problems.
func WithoutProblems(problems ...Problem) Option {
	return func(s *settings) error {
		s.without = slices.Concat(s.without, problems)
		return nil
	}
}

// WithOnEvent makes the leader call f with each event, one event after the other. The context of a
// call ends after the timeout, or when this process no longer leads. If a call fails (it returns an
// error, panics, or has not returned at the timeout), the leader calls f with the event again after
// the next scan, three times in all. While a call has not returned although its context has ended,
// the leader begins no other call; it goes on scanning and logging, and reports the events later.
// After each scan it begins calls until the next scan is due, but at least for half an interval, so
// that slow scans do not prevent the calls. Run returns after the last call has returned.
func WithOnEvent(timeout time.Duration, f func(ctx context.Context, e Event) error) Option {
	return func(s *settings) error {
		if f == nil || timeout <= 0 {
			return fmt.Errorf("%w: WithOnEvent: a timeout of %v: it must be above 0, and the function must not be nil",
				errOption, timeout)
		}
		s.onEvent, s.eventTimeout = f, timeout
		return nil
	}
}
