package election

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// Option changes how an election works. Every call returns its error.
type Option func(*electionConfig) error

// electionConfig are the settings that the options of an election change.
type electionConfig struct {
	id       string
	names    waitline.Kind // of the candidates' nodes
	metadata map[string]string
	priority int
	stable   time.Duration
	health   *healthCheck // or nil
	minTerm  time.Duration
	maxTerm  time.Duration // 0: no limit
	stepDown StepDown
}

// configOf applies options. It returns the first error.
func configOf(opts []Option) (electionConfig, error) {
	c, err := recipe.ApplyOptions(electionConfig{names: waitline.Latch}, opts)
	if err != nil {
		return c, err
	}
	if c.maxTerm > 0 && c.maxTerm < c.minTerm {
		return c, fmt.Errorf("WithMaxTerm: %v is less than WithMinTerm's %v", c.maxTerm, c.minTerm)
	}
	return c, nil
}

// WithID names this candidate to others. Default: the client's Identity. It need not be unique, but
// Term.TransferTo finds candidates by their ids.
func WithID(id string) Option {
	return func(c *electionConfig) error {
		if err := checkID(id); err != nil {
			return fmt.Errorf("WithID: %w", err)
		}
		c.id = id
		return nil
	}
}

// WithMetadata describes this candidate to others, such as with its address, while it waits and
// while it leads. Keys are not empty, keys and values are UTF-8, and the whole has at most
// MaxMetadata bytes. Each term begins with this metadata; see Term.SetMetadata.
func WithMetadata(m map[string]string) Option {
	return func(c *electionConfig) error {
		if err := checkMetadata(m); err != nil {
			return fmt.Errorf("WithMetadata: %w", err)
		}
		c.metadata = maps.Clone(m) // the caller may change its own
		return nil
	}
}

// MaxPriority is the highest priority.
const MaxPriority = 1000

// maxStable bounds the stable period, so that the period in a record can be added to any time.
const maxStable = 365 * 24 * time.Hour

// WithPriority makes this candidate take over from leaders of a lower priority, once it has waited
// in line for the stable period. The period counts from when the present leader first saw the
// candidate's node below <path>~waiting, so it begins again with each leader and each session.
// Among waiting candidates, order alone decides. Default: 0, the lowest.
//
// The present leader hands over, if it runs this package: its function's context ends with
// ErrTransferred, and leadership goes to this candidate. Candidates before it lose their places and
// join again.
func WithPriority(priority int, stable time.Duration) Option {
	return func(c *electionConfig) error {
		switch {
		case priority < 0 || priority > MaxPriority:
			return fmt.Errorf("WithPriority: %d is not between 0 and %d", priority, MaxPriority)
		case stable < 0 || stable > maxStable:
			return fmt.Errorf("WithPriority: a stable period of %v is not between 0 and %v", stable, maxStable)
		}
		c.priority, c.stable = priority, stable
		return nil
	}
}

// WithHealth makes check decide whether this candidate may lead: it joins the line once check
// returns nil. It calls check again every period. An error, or no answer within the period, takes
// the candidate out of the line, or ends its term with ErrUnhealthy as the cause. Calls of check do
// not overlap: the campaigns of one Election that need an answer at the same time share one call,
// and the period counts from its begin. A panic of check, and the end of its goroutine, are errors.
func WithHealth(check func(ctx context.Context) error, period time.Duration) Option {
	return func(c *electionConfig) error {
		switch {
		case check == nil:
			return errors.New("WithHealth: the check is nil")
		case period <= 0:
			return fmt.Errorf("WithHealth: a period of %v, it must be more than 0", period)
		}
		c.health = &healthCheck{check: check, period: period}
		return nil
	}
}

// WithMinTerm keeps a healthy term for at least d: when the function of Lead returns nil sooner,
// the next candidate waits, and so does a candidate with a higher priority. An error, Resign,
// TransferTo, the health check and the end of Lead's context end a term at once.
func WithMinTerm(d time.Duration) Option {
	return func(c *electionConfig) error {
		if d <= 0 {
			return fmt.Errorf("WithMinTerm: %v, it must be more than 0", d)
		}
		c.minTerm = d
		return nil
	}
}

// WithMaxTerm ends each term after d, with locks.ErrMaxHold as its cause, so that other candidates
// get their turn.
func WithMaxTerm(d time.Duration) Option {
	return func(c *electionConfig) error {
		if d <= 0 {
			return fmt.Errorf("WithMaxTerm: %v, it must be more than 0", d)
		}
		c.maxTerm = d
		return nil
	}
}

// StepDown says when a leader stops that has lost its connection.
type StepDown int

const (
	// AtLeaseEnd: when the session's proof of life ends. A short interruption ends no term. The
	// default.
	AtLeaseEnd StepDown = iota
	// AtSuspended: as soon as the client knows that the connection is gone, with ErrDisconnected as
	// the cause, as in Apache Curator's LeaderLatch.
	AtSuspended
)

func (d StepDown) String() string {
	switch d {
	case AtLeaseEnd:
		return "at the end of the lease"
	case AtSuspended:
		return "when suspended"
	}
	return fmt.Sprintf("policy %d", int(d))
}

// WithStepDown says when a leader stops that has lost its connection. If Lead made it a leader, it
// campaigns again in either case.
func WithStepDown(when StepDown) Option {
	return func(c *electionConfig) error {
		if when != AtLeaseEnd && when != AtSuspended {
			return fmt.Errorf("WithStepDown: there is no policy %d", when)
		}
		c.stepDown = when
		return nil
	}
}

// WithSelectorLayout uses the names of Apache Curator's LeaderSelector, lock-#, instead of
// LeaderLatch's. All candidates at one path must use the same: a candidate that finds the other
// layout fails with framework.ErrForeign.
func WithSelectorLayout() Option {
	return func(c *electionConfig) error {
		c.names = waitline.Mutex
		return nil
	}
}
