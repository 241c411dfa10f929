package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Option changes what a monitor finds and how it tells. Its error wraps ErrOption; Run and Check return it.
type Option func(*settings) error

// settings are what options set.
type settings struct {
	interval      time.Duration
	begin, end    int // looks
	waiters       int
	longHold      time.Duration
	failedRuns    int
	oldItem       time.Duration
	deadLetters   int
	growthLooks   int
	growthItems   int
	sessionBytes  int
	without       []Problem
	onEvent       func(context.Context, Event) error
	eventTimeout  time.Duration
	eventAttempts int
}

func newSettings(opts []Option) (settings, error) {
	return recipe.ApplyOptions(settings{
		interval: 30 * time.Second, begin: 2, end: 2, waiters: 10, longHold: 5 * time.Minute, failedRuns: 1, oldItem: time.Hour,
		growthLooks: 10, growthItems: 100, sessionBytes: DefaultSessionBytes, eventAttempts: 3,
	}, opts)
}

// DefaultEventTimeout is a timeout for WithOnEvent that suits most.
const DefaultEventTimeout = 30 * time.Second

// DefaultSessionBytes is what WithSessionBytes sets by default. framework.Config.MaxEphemeralBytes is 900,000 by default.
const DefaultSessionBytes = 700_000

func atLeast[N int | time.Duration](option string, value, least N, set func(*settings)) Option {
	return func(s *settings) error {
		if value < least {
			return fmt.Errorf("%w: %s: %v, it must be at least %v", ErrOption, option, value, least)
		}
		set(s)
		return nil
	}
}

// WithInterval sets the time from the begin of a look to that of the next. Default 30 s, at least 1 s. A look that takes longer delays the next one.
func WithInterval(d time.Duration) Option {
	return atLeast("WithInterval", d, time.Second, func(s *settings) { s.interval = d })
}

// WithHysteresis makes a finding begin after it was seen at so many looks in a row, and end after so many looks in a row without it. Default 2 and 2.
func WithHysteresis(begin, end int) Option {
	return atLeast("WithHysteresis", min(begin, end), 1, func(s *settings) { s.begin, s.end = begin, end })
}

// WithWaiters sets how many may wait for a lock. Default 10.
func WithWaiters(n int) Option {
	return atLeast("WithWaiters", n, 0, func(s *settings) { s.waiters = n })
}

// WithLongHold sets how long a lock may be held while others wait for it. Default 5 minutes.
func WithLongHold(d time.Duration) Option {
	return atLeast("WithLongHold", d, 1, func(s *settings) { s.longHold = d })
}

// WithFailedRuns makes scheduler.ProblemFailed a finding only when the latest n runs have failed, as far as the job's history goes back. Default 1.
func WithFailedRuns(n int) Option {
	return atLeast("WithFailedRuns", n, 1, func(s *settings) { s.failedRuns = n })
}

// WithOldItem sets how old an item at the head of a queue may be. Default 1 hour.
func WithOldItem(d time.Duration) Option {
	return atLeast("WithOldItem", d, 1, func(s *settings) { s.oldItem = d })
}

// WithDeadLetters sets how many dead letters a queue may have. Default 0.
func WithDeadLetters(n int) Option {
	return atLeast("WithDeadLetters", n, 0, func(s *settings) { s.deadLetters = n })
}

// WithGrowth makes a queue a finding that has grown at each of so many looks in a row and has at least so many items. Default 10 and 100.
func WithGrowth(looks, items int) Option {
	return atLeast("WithGrowth", min(looks, items), 1, func(s *settings) { s.growthLooks, s.growthItems = looks, items })
}

// WithSessionBytes sets how many bytes the paths of one session's nodes may have together. Default 700,000.
func WithSessionBytes(n int) Option {
	return atLeast("WithSessionBytes", n, 1, func(s *settings) { s.sessionBytes = n })
}

// Without leaves out problems.
func Without(problems ...Problem) Option {
	return func(s *settings) error {
		s.without = slices.Concat(s.without, problems)
		return nil
	}
}

// WithOnEvent calls f with each event, one after the other. Its context ends after the timeout, or when this process leads no longer. An event whose call returns an error
// or panics is told again after the next look, three times in all. While a call does not return although its context has ended, no other
// call begins; looks and log lines go on, and the events are told later. Run waits for the call.
func WithOnEvent(timeout time.Duration, f func(ctx context.Context, e Event) error) Option {
	return func(s *settings) error {
		if f == nil || timeout <= 0 {
			return fmt.Errorf("%w: WithOnEvent: a timeout of %v, it must be more than 0, and a function", ErrOption, timeout)
		}
		s.onEvent, s.eventTimeout = f, timeout
		return nil
	}
}
