package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// Option changes how an election works. Its error is returned by every call.
type Option func(*Election) error

// WithID names this candidate to others. Default: the client's Identity. It need not be unique, but
// Term.TransferTo finds candidates by it.
func WithID(id string) Option {
	return func(e *Election) error {
		if err := checkID(id); err != nil {
			return fmt.Errorf("WithID: %w", err)
		}
		e.id = id
		return nil
	}
}

// WithMetadata tells others more of this candidate, while it waits and while it leads. Each term begins with
// it; see Term.Update.
func WithMetadata(m Metadata) Option {
	return func(e *Election) error {
		if err := m.check(); err != nil {
			return fmt.Errorf("WithMetadata: %w", err)
		}
		e.metadata = m.clone()
		return nil
	}
}

// MaxPriority is the highest priority.
const MaxPriority = 1000

// maxStable bounds the stable period, so that a record's can be added to any time.
const maxStable = 365 * 24 * time.Hour

// WithPriority makes this candidate take over from leaders of a lower priority, once it has waited in line
// for the stable period. Among those who wait, order alone decides. Default: 0, the lowest.
//
// The present leader sees to it, if it is of this package: its function's context ends with ErrTransferred,
// and leadership goes to this candidate, past those before it, who queue again.
func WithPriority(priority int, stable time.Duration) Option {
	return func(e *Election) error {
		switch {
		case priority < 0 || priority > MaxPriority:
			return fmt.Errorf("WithPriority: %d is not between 0 and %d", priority, MaxPriority)
		case stable < 0 || stable > maxStable:
			return fmt.Errorf("WithPriority: a stable period of %v is not between 0 and %v", stable, maxStable)
		}
		e.priority, e.stable = priority, stable
		return nil
	}
}

// WithHealth makes check decide whether this candidate may lead: it joins the line once check returns nil.
// It is asked again every period, and an error, or no answer within the period, takes the candidate out of
// the line, or ends its term with ErrUnhealthy as the cause. It is never called twice at once.
func WithHealth(check func(ctx context.Context) error, period time.Duration) Option {
	return func(e *Election) error {
		switch {
		case check == nil:
			return errors.New("WithHealth: the check is nil")
		case period <= 0:
			return fmt.Errorf("WithHealth: a period of %v, it must be more than 0", period)
		}
		e.health = newHealthCheck(check, period)
		return nil
	}
}

// WithMinTerm keeps a term for at least d where nothing is wrong: when the function of Lead returns nil sooner,
// the next candidate waits, and so does one with a higher priority. An error, Resign, TransferTo, the
// health check and the end of Lead's context end a term at once.
func WithMinTerm(d time.Duration) Option {
	return func(e *Election) error {
		if d <= 0 {
			return fmt.Errorf("WithMinTerm: %v, it must be more than 0", d)
		}
		e.minTerm = d
		return nil
	}
}

// WithMaxTerm ends each term after d, with ErrMaxTerm as its cause, so that others get their turn.
func WithMaxTerm(d time.Duration) Option {
	return func(e *Election) error {
		if d <= 0 {
			return fmt.Errorf("WithMaxTerm: %v, it must be more than 0", d)
		}
		e.maxTerm = d
		return nil
	}
}

// StepDown says when a leader that has lost its connection stops.
type StepDown int

const (
	// AtLeaseEnd: when the session's proof of life ends. A short interruption ends no term. The default.
	AtLeaseEnd StepDown = iota
	// AtSuspended: as soon as the client knows that the connection is gone, with ErrDisconnected as the cause.
	// Apache Curator's LeaderLatch does this.
	AtSuspended
)

// WithStepDown says when a leader that has lost its connection stops. It campaigns again by itself in
// either case, if Lead made it a leader.
func WithStepDown(when StepDown) Option {
	return func(e *Election) error {
		if when != AtLeaseEnd && when != AtSuspended {
			return fmt.Errorf("WithStepDown: there is no policy %d", when)
		}
		e.stepDown = when
		return nil
	}
}

// WithSelectorLayout uses the names of Apache Curator's LeaderSelector, lock-#, instead of LeaderLatch's. All
// candidates at one path must use the same: whoever meets the other is refused with locks.ErrKindMixed.
func WithSelectorLayout() Option {
	return func(e *Election) error {
		e.kind = locks.MutexKind
		return nil
	}
}
