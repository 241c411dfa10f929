package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Defaults of the options of Kind.Function.
const (
	DefaultWorkers    = 8
	DefaultAttempts   = 10
	DefaultFirstPause = time.Second
	DefaultMaxLosses  = 50
)

// Function is the function that a member calls for each run of a kind. Kind.Function makes one, and
// Workflows.Register takes it.
type Function struct {
	kind string
	call func(ctx context.Context, run *Run, input json.RawMessage) (json.RawMessage, error)
	cfg  functionOptions
	err  error // of the arguments of NewKind and Kind.Function
}

// newFunction returns a function that decodes the input and encodes the result of fn.
func newFunction[I, O any](kind string, fn func(ctx context.Context, run *Run, input I) (O, error),
	opts []FunctionOption) Function {
	f := Function{kind: kind, err: checkName(kind)}
	if f.err == nil && fn == nil {
		f.err = fmt.Errorf("%w: the function of kind %q is nil", errOption, kind)
	}
	var err error
	if f.cfg, err = recipe.ApplyOptions(functionOptions{workers: DefaultWorkers, attempts: DefaultAttempts,
		firstPause: DefaultFirstPause, losses: DefaultMaxLosses}, opts); f.err == nil {
		f.err = err
	}
	f.call = func(ctx context.Context, run *Run, data json.RawMessage) (json.RawMessage, error) {
		var input I
		if err := json.Unmarshal(data, &input); err != nil {
			// a member with another release may have the type
			return nil, fmt.Errorf("%w: the input %s does not decode into %T: %w", errResult, shortenResult(data),
				input, err)
		}
		result, err := fn(ctx, run, input)
		if err != nil {
			return nil, err
		}
		return encodeReturned(result)
	}
	return f
}

// FunctionOption changes how a member executes the runs of a kind.
type FunctionOption func(*functionOptions) error

type functionOptions struct {
	workers    int
	attempts   int
	firstPause time.Duration
	losses     int
}

// WithWorkers sets how many runs of the kind this process executes at once, at most MaxWorkers.
// Default 8.
func WithWorkers(n int) FunctionOption {
	return func(o *functionOptions) error {
		if n < 1 || n > MaxWorkers {
			return fmt.Errorf("%w: %d workers, there must be 1 to %d", errOption, n, MaxWorkers)
		}
		o.workers = n
		return nil
	}
}

// WithRunAttempts sets how many attempts the function has since the run last waited: when so many
// have failed, the run is Failed. Default 10. The pauses between attempts begin at firstPause and
// double up to 5 minutes; they are kept in seconds, rounded up. Default 1 s.
func WithRunAttempts(attempts int, firstPause time.Duration) FunctionOption {
	return func(o *functionOptions) error {
		o.attempts, o.firstPause = attempts, firstPause
		return checkAttempts(attempts, firstPause)
	}
}

// WithMaxLosses sets how many executors a run may lose since it last waited, failed or recorded a
// step, before the run is Failed: by a crash, a lost session, or the end of the grace of Work.
// Default 50. A process that crashes counts for all runs that it had. A run that has lost more than
// half as many is suspected: a process executes one suspected run at a time, in a random order,
// until it has recorded a step. So those that crash no process are executed without the one that
// does.
func WithMaxLosses(n int) FunctionOption {
	return func(o *functionOptions) error {
		if n < 1 {
			return fmt.Errorf("%w: %d losses, there must be at least 1", errOption, n)
		}
		o.losses = n
		return nil
	}
}

// pauseAfter is the pause after a number of failures, which is 1 or more.
func (o functionOptions) pauseAfter(failures int) time.Duration {
	pause := o.firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}
