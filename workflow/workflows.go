package workflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/queue"
)

// Workflows starts and executes runs: functions in steps that go on at the first unfinished step when their executor has died. Many goroutines may use
// it at once. Close it when it is no longer needed.
type Workflows struct {
	store *runStore
	cfg   options
	err   error // of New's arguments

	mu      sync.Mutex
	kinds   map[string]Kind
	working bool
}

// Option changes how Workflows works.
type Option func(*options) error

type options struct {
	retention time.Duration
	grace     time.Duration
}

// Defaults of the options.
const (
	DefaultRetention = 24 * time.Hour
	DefaultGrace     = queue.DefaultGrace
)

// WithRetention sets how long finished runs can be looked at, from one minute. Then a member that works removes them some time later, and their ids may be used again. Give
// it to all members. Default 24 h.
func WithRetention(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Minute {
			return fmt.Errorf("%w: retention %v, it must be at least a minute", ErrOption, d)
		}
		o.retention = d
		return nil
	}
}

// WithGrace sets how long functions may continue after the context of Work has ended. Then their contexts end, and other members go on with the runs. Default 30 s.
func WithGrace(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("%w: grace %v is negative", ErrOption, d)
		}
		o.grace = d
		return nil
	}
}

// New returns the workflows at path. It sends no request. If an argument or an option is invalid, every call returns an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Workflows {
	w := &Workflows{store: newRunStore(client, path), kinds: map[string]Kind{}}
	var err error
	w.cfg, err = recipe.ApplyOptions(options{retention: DefaultRetention, grace: DefaultGrace}, opts)
	if w.err = recipe.CheckClientAndPath(client, path, "workflows"); w.err == nil {
		w.err = err
	}
	if w.err == nil {
		w.store.tel = newTelemetry(client)
	}
	return w
}

// Path is the path of the workflows.
func (w *Workflows) Path() string { return w.store.path }

// Err is why every call fails, or nil.
func (w *Workflows) Err() error { return w.err }

// Register adds kinds of runs that this process executes in Work, which must not have begun. A name that is registered twice is an error.
func (w *Workflows) Register(kinds ...Kind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	for _, k := range kinds {
		_, twice := w.kinds[k.name]
		switch {
		case err != nil:
		case k.run == nil:
			err = fmt.Errorf("%w: a Kind must be made by NewKind", ErrOption)
		case k.err != nil:
			err = k.err
		case twice:
			err = fmt.Errorf("%w: kind %q is registered twice", ErrOption, k.name)
		case w.working:
			err = fmt.Errorf("%w: kind %q is registered after Work has begun", ErrOption, k.name)
		default:
			w.kinds[k.name] = k
		}
	}
	return failure.Wrap("register", w.Path(), err)
}

// Start starts a run of a kind, with an input that is stored as JSON. It returns once the servers have the run: in one transaction with the item for which a member
// executes it. A run is known by its id. If a run with this id, kind and input exists, in any state, Start does nothing. With another kind or input it returns ErrIDInUse.
//
// The errors also wrap ErrUnknownKind, framework.ErrTooLarge for an input of more than MaxResult bytes, ErrResult, ErrOption, or the end of ctx: then call Start again.
func (w *Workflows) Start(ctx context.Context, kind, id string, input any) error {
	data, err := encodeResult(input)
	for _, of := range []string{kind, id} {
		if err == nil {
			err = checkName(of)
		}
	}
	if err = w.orUnusable(err); err == nil {
		err = w.checkKnown(ctx, kind)
	}
	if err == nil {
		_, err = w.store.start(ctx, id, runRecord{Workflow: kind, Input: data, Trace: w.store.tel.traceContext(ctx)})
	}
	return failure.Wrap("start", w.Path(), err)
}

// orUnusable returns the error of New's arguments, if there is one.
func (w *Workflows) orUnusable(err error) error {
	if w.err != nil {
		return w.err
	}
	return err
}

// checkKnown refuses a kind on which nobody has worked.
func (w *Workflows) checkKnown(ctx context.Context, kind string) error {
	w.mu.Lock()
	_, known := w.kinds[kind]
	w.mu.Unlock()
	if known {
		return nil
	}
	return recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
		path := w.store.queuePath(kind)
		err := s.Sync(ctx, path)
		if err == nil {
			_, err = s.Exists(ctx, path)
		}
		if errors.Is(err, framework.ErrNoNode) {
			return fmt.Errorf("%w: %q: register it, or start a member that has it", ErrUnknownKind, kind)
		}
		return err
	}, failure.IsTransient)
}

// Signal gives a run a signal with data, stored as JSON. The run's Await returns it, also if it is called later. A signal is given once: with the
// same data again Signal does nothing, with other data it returns ErrSignalled. For a run that has ended it returns ErrFinished.
func (w *Workflows) Signal(ctx context.Context, id, signal string, data any) error {
	encoded, err := encodeResult(data)
	for _, of := range []string{id, signal} {
		if err == nil {
			err = checkName(of)
		}
	}
	if err == nil && len(encoded) > MaxSignal {
		err = fmt.Errorf("%w: the signal has %d bytes, it may have %d: store it elsewhere and send its place", framework.ErrTooLarge, len(encoded), MaxSignal)
	}
	if err = w.orUnusable(err); err == nil {
		err = w.store.signal(ctx, id, signal, encoded)
	}
	return failure.Wrap("signal", w.Path(), err)
}

// Cancel ends a run, with a reason for those who look at it. The context of its function ends soon, with the cause ErrCancelled. A step that is under way may have its effect, but no
// record. A run that was cancelled before is no error; one that has ended otherwise is ErrFinished. Child runs are not cancelled.
func (w *Workflows) Cancel(ctx context.Context, id, reason string) error {
	err := w.orUnusable(checkName(id))
	if err == nil {
		err = w.store.cancel(ctx, id, reason)
	}
	return failure.Wrap("cancel", w.Path(), err)
}

// Retry lets a run go on that has failed or was cancelled, with all its attempts, or one that waits after a failed attempt without the rest of the pause. If from is not "", Retry deletes the
// record of that step and those of all steps and sleeps that were recorded after it: they are run again, with the same keys. Signals stay. A run that is
// Done needs a step. A run that goes on by itself is ErrUnfinished.
func (w *Workflows) Retry(ctx context.Context, id, from string) error {
	err := w.orUnusable(checkName(id))
	if err == nil && from != "" {
		err = checkName(from)
	}
	if err == nil {
		err = w.store.retry(ctx, id, from)
	}
	return failure.Wrap("retry", w.Path(), err)
}

// Work executes runs of the registered kinds, and removes finished ones after the retention time, until ctx ends. It returns nil if all functions have returned within the grace
// (WithGrace), and else an error that wraps queue.ErrUnfinished. A lasting error, such as framework.ErrNoAuth, ends it too.
func (w *Workflows) Work(ctx context.Context) error {
	w.mu.Lock()
	kinds := slices.Collect(maps.Values(w.kinds))
	err := w.err
	if err == nil && len(kinds) == 0 {
		err = fmt.Errorf("%w: no kind is registered", ErrOption)
	}
	w.working = w.working || err == nil
	w.mu.Unlock()
	if err != nil {
		return failure.Wrap("work", w.Path(), err)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(kinds)+1)
	var working sync.WaitGroup
	for i, k := range kinds {
		working.Go(func() {
			defer cancel() // one that cannot go on ends the others
			errs[i] = (&runner{w.store, k}).work(within, w.cfg.grace)
		})
	}
	working.Go(func() {
		defer cancel()
		errs[len(kinds)] = (&sweeper{w.store, w.cfg.retention}).sweepUntilEnd(within)
	})
	working.Wait()
	return failure.Wrap("work", w.Path(), errors.Join(errs...))
}

// Close closes the queues that Start, Signal and Work have used. Call it after Work has returned.
func (w *Workflows) Close(ctx context.Context) error {
	return failure.Wrap("close", w.Path(), w.store.close(ctx))
}
