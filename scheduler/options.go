package scheduler

import (
	"fmt"
	"maps"
	"time"
)

// Option changes how a scheduler works. Its error, which wraps ErrInvalidOption, is returned by every call.
type Option func(*settings) error

// The defaults of a scheduler.
const (
	defaultDrain      = 10 * time.Second
	defaultStuckAfter = 10 * time.Second
	defaultHistory    = 10
)

const maxHistory = 100

// settings are what options set.
type settings struct {
	drain         time.Duration
	stuckAfter    time.Duration
	history       int
	maxConcurrent int // 0: no bound
	labels        map[string]string
	waitForJobs   bool
	now           func() time.Time
	observe       func(Event)
	maxPause      time.Duration // bounds the dispatcher's wait: clocks may be set, and timers stand still while a machine is suspended
}

// newSettings applies options to the defaults. Its error is that of the first option that cannot be used.
func newSettings(opts []Option) (settings, error) {
	s := settings{drain: defaultDrain, stuckAfter: defaultStuckAfter, history: defaultHistory, now: time.Now, maxPause: 10 * time.Second}
	var first error
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(&s); err != nil && first == nil {
			first = err
		}
	}
	return s, first
}

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalidOption}, args...)...)
}

// WithDrain lets runs go on for d when the scheduler is stopped, before their contexts end. Default 10 s;
// 0 ends them at once.
func WithDrain(d time.Duration) Option {
	return func(s *settings) error {
		if d < 0 {
			return invalidOption("WithDrain: %v is negative", d)
		}
		s.drain = d
		return nil
	}
}

// WithWaitForJobs makes Run wait for the first job, instead of returning ErrNoJobs. Until then it sends no requests.
func WithWaitForJobs() Option {
	return func(s *settings) error {
		s.waitForJobs = true
		return nil
	}
}

// WithStuckAfter reports a run as stuck that has not returned so long after its context has ended, and lets
// a scheduler that is stopped wait for it no longer. Default 10 s.
func WithStuckAfter(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalidOption("WithStuckAfter: %v is not positive", d)
		}
		s.stuckAfter = d
		return nil
	}
}

// WithHistory keeps the latest n runs of each job that have ended, 1 to 100. Default 10. All members should
// have the same.
func WithHistory(n int) Option {
	return func(s *settings) error {
		if n < 1 || n > maxHistory {
			return invalidOption("WithHistory: %d: want 1 to %d", n, maxHistory)
		}
		s.history = n
		return nil
	}
}

// WithMaxConcurrent lets this member run at most n jobs at once. Ticks that have to wait are run late, as
// their jobs' misfire policies allow. Default: no bound.
func WithMaxConcurrent(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return invalidOption("WithMaxConcurrent: %d: want 1 or more", n)
		}
		s.maxConcurrent = n
		return nil
	}
}

// WithLabels describes this member, for jobs that are pinned to some by Job.Labels. Names and values have at
// most 256 bytes.
func WithLabels(labels map[string]string) Option {
	return func(s *settings) error {
		if err := validLabels(labels); err != nil {
			return invalidOption("WithLabels: %w", err)
		}
		s.labels = maps.Clone(labels)
		return nil
	}
}

// WithNow makes the scheduler read the time of day from now. Default time.Now. It is for tests of clocks
// that go wrong.
func WithNow(now func() time.Time) Option {
	return func(s *settings) error {
		if now == nil {
			return invalidOption("WithNow: the function is nil")
		}
		s.now = now
		return nil
	}
}

// WithObserver calls observe with what happens, from the goroutines in which it happens, several at once.
// It must be quick.
func WithObserver(observe func(Event)) Option {
	return func(s *settings) error {
		if observe == nil {
			return invalidOption("WithObserver: the function is nil")
		}
		s.observe = observe
		return nil
	}
}
