package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Defaults of a kind's options.
const (
	DefaultWorkers    = 8
	DefaultAttempts   = 10
	DefaultFirstPause = time.Second
	DefaultMaxLosses  = 50
)

// Kind is a kind of runs: its name and its function. Make one with NewKind.
type Kind struct {
	name string
	run  func(ctx context.Context, run *Run, input json.RawMessage) (json.RawMessage, error)
	cfg  kindOptions
	err  error // of NewKind's arguments
}

// Name is the kind's name.
func (k Kind) Name() string { return k.name }

// NewKind returns a kind of runs with a function, to be registered with Workflows.Register.
//
// The function is called with the input of Start, and again from its beginning after each wait,
// failure and loss of its executor. What it does outside Step, Sleep, Await and Child is done again
// then. Its context ends when the delivery of the run is lost, when the run is cancelled, and at
// the end of the grace of Work; it should return soon after.
//
// The function returns the run's result; or an error that wraps ErrWaiting, to be called again when
// a wait is over; or another error, to be called again after a pause, until the attempts of
// WithAttempts are used up. An error of Permanent ends the run at once. A panic is an error. When
// Sleep, Await or Child has returned ErrWaiting in this call, the run waits also if the function
// returns a result, which is then dropped. An input that does not decode into I is a failed
// attempt: a member with another release may take the next one.
//
// Two releases may work side by side: a member takes only runs of kinds that it has registered, and
// finds steps by their names.
func NewKind[I, O any](name string, fn func(ctx context.Context, run *Run, input I) (O, error),
	opts ...KindOption) Kind {
	k := Kind{name: name}
	if k.err = checkName(name); k.err == nil && fn == nil {
		k.err = fmt.Errorf("%w: the function of kind %q is nil", ErrOption, name)
	}
	var err error
	if k.cfg, err = recipe.ApplyOptions(kindOptions{workers: DefaultWorkers, attempts: DefaultAttempts,
		firstPause: DefaultFirstPause, losses: DefaultMaxLosses}, opts); k.err == nil {
		k.err = err
	}
	k.run = func(ctx context.Context, run *Run, data json.RawMessage) (json.RawMessage, error) {
		var input I
		if err := json.Unmarshal(data, &input); err != nil {
			// a member with another release may have the type
			return nil, fmt.Errorf("%w: the input %s does not decode into %T: %w", ErrResult, shortenResult(data),
				input, err)
		}
		result, err := fn(ctx, run, input)
		if err != nil {
			return nil, err
		}
		encoded, err := encodeResult(result)
		return encoded, Permanent(err)
	}
	return k
}

// KindOption changes how the runs of a kind are executed.
type KindOption func(*kindOptions) error

type kindOptions struct {
	workers    int
	attempts   int
	firstPause time.Duration
	losses     int
}

// WithWorkers sets how many runs of the kind this process executes at once, at most MaxWorkers.
// Default 8.
func WithWorkers(n int) KindOption {
	return func(o *kindOptions) error {
		if n < 1 || n > MaxWorkers {
			return fmt.Errorf("%w: %d workers, there must be 1 to %d", ErrOption, n, MaxWorkers)
		}
		o.workers = n
		return nil
	}
}

// WithAttempts sets how many attempts the function has since the run last waited: when so many have
// failed, the run is Failed. Default 10. The pauses between attempts begin at firstPause and double
// up to 5 minutes; they are kept in seconds, rounded up. Default 1 s.
func WithAttempts(attempts int, firstPause time.Duration) KindOption {
	return func(o *kindOptions) error {
		if attempts < 1 {
			return fmt.Errorf("%w: %d attempts, there must be at least 1", ErrOption, attempts)
		}
		if firstPause <= 0 || firstPause > longestPause {
			return fmt.Errorf("%w: first pause %v, it must be more than 0 and at most %v", ErrOption,
				firstPause, longestPause)
		}
		o.attempts, o.firstPause = attempts, firstPause
		return nil
	}
}

// WithMaxLosses sets how many executors a run may lose since it last waited, failed or recorded a
// step, before the run is Failed: by a crash, a lost session, or the end of the grace of Work.
// Default 50. A process that crashes counts for all runs that it had. A run that has lost more than
// half as many is suspected: a process executes one suspected run at a time, in a random order,
// until it has recorded a step. So those that crash no process get their turn without the one that
// does.
func WithMaxLosses(n int) KindOption {
	return func(o *kindOptions) error {
		if n < 1 {
			return fmt.Errorf("%w: %d losses, there must be at least 1", ErrOption, n)
		}
		o.losses = n
		return nil
	}
}

// pauseAfter is the pause after a number of failures, which is 1 or more.
func (o kindOptions) pauseAfter(failures int) time.Duration {
	pause := o.firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}
