package scheduler

import (
	"fmt"
	"maps"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Option changes how a scheduler works. Its error, which wraps framework.ErrInvalid, is returned by
// every call.
type Option func(*settings) error

// DefaultGrace is how long runs may go on when a scheduler is stopped, unless WithGrace sets it.
const DefaultGrace = 30 * time.Second

// The other defaults of a scheduler.
const (
	defaultStuckAfter = 10 * time.Second
	defaultHistory    = 10
)

const maxHistory = 100

// settings are what options set.
type settings struct {
	grace         time.Duration
	stuckAfter    time.Duration
	history       int
	maxConcurrent int // 0: no bound
	labels        map[string]string
	waitForJobs   bool
	now           func() time.Time
	onEvent       func(Event)
	// bounds the dispatcher's wait: clocks may be set, and timers stand still while a machine is
	// suspended
	maxPause time.Duration
}

// newSettings applies options to the defaults. Its error is that of the first option that cannot be
// used.
func newSettings(opts []Option) (settings, error) {
	return recipe.ApplyOptions(settings{
		grace: DefaultGrace, stuckAfter: defaultStuckAfter, history: defaultHistory, now: time.Now,
		maxPause: 10 * time.Second,
	}, opts)
}

func invalidOption(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errInvalidOption}, args...)...)
}

// WithGrace lets runs go on for d when the scheduler is stopped, before their contexts end. Default
// 30 s; 0 ends them at once.
func WithGrace(d time.Duration) Option {
	return func(s *settings) error {
		if d < 0 {
			return invalidOption("WithGrace: %v is negative", d)
		}
		s.grace = d
		return nil
	}
}

// WithWaitForJobs makes Run wait for the first job, instead of returning framework.ErrInvalid.
// Until then it sends no requests.
func WithWaitForJobs() Option {
	return func(s *settings) error {
		s.waitForJobs = true
		return nil
	}
}

// WithStuckAfter sets when a run counts as stuck: its function has not returned although its
// context ended d ago. Then the scheduler reports the run (EventStuck, RunRecord.Stuck), and a
// scheduler that is being stopped waits for the run no longer. Default 10 s.
func WithStuckAfter(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalidOption("WithStuckAfter: %v is not positive", d)
		}
		s.stuckAfter = d
		return nil
	}
}

// WithHistory keeps the records of the latest n ended runs of each job, 1 to 100. Default 10. Give
// all members the same n: it is the size of a ring of nodes. If n is lowered later, the nodes above
// it stay until the job is removed.
func WithHistory(n int) Option {
	return func(s *settings) error {
		if n < 1 || n > maxHistory {
			return invalidOption("WithHistory: %d: want 1 to %d", n, maxHistory)
		}
		s.history = n
		return nil
	}
}

// WithMaxConcurrent lets this member run at most n runs at once. Ticks that have to wait start
// late, as far as their jobs' misfire policies allow. A run that was claimed by a transaction with
// a lost reply starts at once, also beyond n. Default: no bound.
func WithMaxConcurrent(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return invalidOption("WithMaxConcurrent: %d: want 1 or more", n)
		}
		s.maxConcurrent = n
		return nil
	}
}

// WithLabels describes this member, for jobs that Job.Labels pin to members with certain labels.
// There may be 64 labels. Names and values have at most 256 bytes each.
func WithLabels(labels map[string]string) Option {
	return func(s *settings) error {
		if err := validLabels(labels); err != nil {
			return invalidOption("WithLabels: %w", err)
		}
		s.labels = maps.Clone(labels)
		return nil
	}
}

// WithNow makes the scheduler read the time of day from now. Default time.Now. It is for tests of
// clocks that go wrong.
func WithNow(now func() time.Time) Option {
	return func(s *settings) error {
		if now == nil {
			return invalidOption("WithNow: the function is nil")
		}
		s.now = now
		return nil
	}
}

// WithOnEvent calls f with each Event, several at once. What reports an event waits until f has
// returned, so f must be quick. It may call the scheduler's methods. A panic of f is logged.
func WithOnEvent(f func(Event)) Option {
	return func(s *settings) error {
		if f == nil {
			return invalidOption("WithOnEvent: the function is nil")
		}
		s.onEvent = f
		return nil
	}
}
