package workflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/queue"
)

// Workflows starts and executes runs: functions in steps that go on at the first unfinished step
// when their executor has died. Its methods are safe for concurrent use. Close it when it is no
// longer needed.
type Workflows struct {
	store *runStore
	cfg   options
	err   error // of New's arguments

	mu        sync.Mutex
	functions map[string]Function // by kind
	working   bool
}

// Option changes how Workflows works.
type Option func(*options) error

type options struct {
	retention       time.Duration
	failedRetention time.Duration
	grace           time.Duration
}

// Defaults of the options.
const (
	DefaultRetention       = 24 * time.Hour
	DefaultFailedRetention = 14 * 24 * time.Hour
	DefaultGrace           = queue.DefaultGrace
)

// WithRetention sets how long runs that are Done or Cancelled are kept: at least one minute, by
// default 24 h. Some time after that a member in Work removes them, and their ids may be used
// again. A child run stays as long as its parent, if that is longer. Give all members the same
// value.
func WithRetention(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Minute {
			return fmt.Errorf("%w: retention %v, it must be at least a minute", errOption, d)
		}
		o.retention = d
		return nil
	}
}

// WithFailedRetention sets how long runs that have Failed are kept, so that an operator can look at
// them and retry them: at least one minute, by default 14 days. Otherwise it is as WithRetention.
func WithFailedRetention(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Minute {
			return fmt.Errorf("%w: retention of failed runs %v, it must be at least a minute", errOption, d)
		}
		o.failedRetention = d
		return nil
	}
}

// WithGrace sets how long functions may continue after the context of Work has ended. Then their
// contexts end, and other members go on with the runs once the functions have returned. 0 ends the
// contexts at once. Default 30 s.
func WithGrace(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("%w: grace %v is negative", errOption, d)
		}
		o.grace = d
		return nil
	}
}

// New returns the workflows at path. It sends no request. If an argument or an option is invalid,
// every call returns an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Workflows {
	w := &Workflows{functions: map[string]Function{}}
	w.store = newRunStore(client, path, w.isRegistered)
	var err error
	w.cfg, err = recipe.ApplyOptions(options{retention: DefaultRetention, failedRetention: DefaultFailedRetention,
		grace: DefaultGrace}, opts)
	if w.err = recipe.CheckClientAndPath(client, path, "workflows"); w.err == nil {
		w.err = err
	}
	if w.err == nil {
		w.store.tel = newTelemetry(client)
	}
	return w
}

// Grace returns how long functions may continue after the context of Work has ended; see WithGrace.
func (w *Workflows) Grace() time.Duration { return w.cfg.grace }

// Path is the path of the workflows.
func (w *Workflows) Path() string { return w.store.path }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (w *Workflows) Validate() error { return w.err }

// Register adds functions that this process calls in Work, which must not have begun: one for each
// kind of runs that it executes. A second function for a kind is an error. After an error none of
// the functions is registered.
func (w *Workflows) Register(functions ...Function) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	registered := maps.Clone(w.functions)
	err := w.err
	for _, f := range functions {
		_, twice := registered[f.kind]
		switch {
		case err != nil:
		case f.call == nil:
			err = fmt.Errorf("%w: a Function must be made by Kind.Function", errOption)
		case f.err != nil:
			err = f.err
		case twice:
			err = fmt.Errorf("%w: kind %q is registered twice", errOption, f.kind)
		case w.working:
			err = fmt.Errorf("%w: kind %q is registered after Work has begun", errOption, f.kind)
		default:
			registered[f.kind] = f
		}
	}
	if err != nil {
		return failure.Wrap("register", w.Path(), err)
	}
	w.functions = registered
	return nil
}

// start starts a run and returns its UUID, which is "" if only its kept id is left. See Kind.Start.
func (w *Workflows) start(ctx context.Context, kind, id string, input any, opts []StartOption) (string, error) {
	data, err := encodeValue("input", input, MaxResult)
	cfg, wrong := recipe.ApplyOptions(startOptions{}, opts)
	if err == nil {
		err = wrong
	}
	for _, of := range []string{kind, id} {
		if err == nil {
			err = checkName(of)
		}
	}
	var stored storedRun
	if err = w.argumentErrorOr(err); err == nil {
		record := runRecord{Workflow: kind, Input: data, Trace: w.store.tel.traceContext(ctx),
			Keep: cfg.keep.Milliseconds()}
		stored, err = w.store.start(ctx, id, record, cfg)
		if errors.Is(err, framework.ErrInvalid) { // an operation with a bad path
			err = fmt.Errorf("%w: %w", errOption, err)
		}
	}
	return stored.UUID, failure.Wrap("start", w.Path(), err)
}

// argumentErrorOr returns the error of New's arguments, if there is one.
func (w *Workflows) argumentErrorOr(err error) error {
	if w.err != nil {
		return w.err
	}
	return err
}

// isRegistered reports whether this process has registered the function of a kind.
func (w *Workflows) isRegistered(kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.functions[kind]
	return ok
}

// ofRun names the run in an error.
func ofRun(id string, err error) error {
	if err == nil || errors.Is(err, errNoRun) { // which names the run
		return err
	}
	return fmt.Errorf("run %q: %w", id, err)
}

// SignalOption changes how a signal is given.
type SignalOption func(*signalRecord) error

// WithSignalID gives one of several signals of a name, told apart by their ids, of 1 to 128 bytes:
// the k-th Await of the name returns the k-th of them, in the order in which they came. So a run
// can consume a stream of events. A signal with an id is given once, as one without an id is; it is
// not refused after Await has timed out, but is for the next Await of the name.
func WithSignalID(id string) SignalOption {
	return func(r *signalRecord) error {
		if id == "" || len(id) > MaxName || !utf8.ValidString(id) {
			return fmt.Errorf("%w: WithSignalID: %.*q, want 1 to %d bytes of UTF-8", errOption, MaxName, id, MaxName)
		}
		r.ID = id
		return nil
	}
}

// Signal gives a run a signal with data, stored as JSON of at most MaxSignal bytes. The run's Await
// returns the data, also if it is called later. A signal is given once: with the same data again
// Signal does nothing, with other data, or after Await has timed out, it returns ErrSignalled. For
// a finished run without this signal it returns ErrFinished. WithSignalID gives several signals of
// one name.
//
// After a lost reply or a lost session Signal reads what was done: nil says that the run has the
// signal, also if the run has finished meanwhile. If the run was removed before that, the error
// wraps framework.ErrOutcomeUnknown. After the end of ctx the run may have the signal; call Signal
// again.
func (w *Workflows) Signal(ctx context.Context, id, signal string, data any, opts ...SignalOption) error {
	encoded, err := encodeValue("signal", data, MaxSignal)
	given, wrong := recipe.ApplyOptions(signalRecord{Data: encoded}, opts)
	if err == nil {
		err = wrong
	}
	for _, of := range []string{id, signal} {
		if err == nil {
			err = checkName(of)
		}
	}
	if err = w.argumentErrorOr(err); err == nil {
		err = ofRun(id, w.store.signal(ctx, id, signal, given))
	}
	return failure.Wrap("signal", w.Path(), err)
}

// Cancel ends a run, and stores the reason. The context of its function ends soon, with the cause
// ErrCancelled. A step that is under way may have its effect, but no record. Cancel does nothing if
// the run is Cancelled, and returns ErrFinished if it is Done or Failed. It does not cancel child
// runs.
//
// After a lost reply or a lost session Cancel reads what was done: the record keeps the UUIDs of
// the latest four requests to cancel or retry the run. So Cancel does not cancel a run again that
// another caller has retried since. If four other requests have come since, or the run was removed,
// the error wraps framework.ErrOutcomeUnknown. After the end of ctx the run may be cancelled:
// Inspect shows it.
func (w *Workflows) Cancel(ctx context.Context, id, reason string) error {
	err := w.argumentErrorOr(checkName(id))
	if err == nil {
		err = ofRun(id, w.store.cancel(ctx, id, reason))
	}
	return failure.Wrap("cancel", w.Path(), err)
}

// Retry makes a Failed or Cancelled run Active again, with all its attempts. For a run that waits
// after a failed attempt it ends the pause. If from is not "", it names a step, a sleep or the
// signal of a wait with a timeout. Retry deletes this record and all records that were made later,
// also those of parallel branches; members run these steps again, with the same keys. Signals that
// have come stay, and so do the records of steps that have failed permanently, unless from deletes
// them: name such a step to run it again. Child runs stay as they are: to run a child again, retry
// the child first. If the run has no such record, Retry returns framework.ErrInvalid. If they
// are more than go into one transaction, some 2,400 with the longest names, Retry changes nothing
// and returns framework.ErrTooLarge. For a run that is Done, from must be given, or Retry returns
// ErrFinished. For any other run it returns ErrNotFinished.
//
// WithRetryInput replaces the run's input. Steps with a record keep their results, whatever input
// they had: name a step in from to run it again.
//
// Retry takes effect at most once, also if a reply or a session is lost and the run has finished
// before it is read again; see Cancel. The error wraps framework.ErrOutcomeUnknown in the same
// cases. After the end of ctx the run may have been retried: Inspect shows it.
func (w *Workflows) Retry(ctx context.Context, id, from string, opts ...RetryOption) error {
	how, err := recipe.ApplyOptions(retryOptions{}, opts)
	if err == nil {
		err = checkName(id)
	}
	err = w.argumentErrorOr(err)
	if err == nil && from != "" {
		err = checkName(from)
	}
	if err == nil {
		err = ofRun(id, w.store.retry(ctx, id, from, how))
	}
	return failure.Wrap("retry", w.Path(), err)
}

// Remove deletes a finished run with its records, before its retention is over: its id may be used
// again, unless WithKeptID keeps it. A child stays as long as its parent. For a run that has not
// finished, and for a child whose parent exists, Remove returns ErrNotFinished.
//
// After a lost reply or a lost session Remove reads what was done. After the end of ctx the run may
// be removed: call Remove again, which returns framework.ErrNotFound then.
func (w *Workflows) Remove(ctx context.Context, id string) error {
	err := w.argumentErrorOr(checkName(id))
	if err == nil {
		err = ofRun(id, w.store.removeFinished(ctx, id))
	}
	return failure.Wrap("remove", w.Path(), err)
}

// Requeue makes an unfinished run go on whose item in the queue of its kind is gone, because an
// operator has purged that queue: it puts another item there, delayed if the run waits for a time.
// A run that waits only for signals or children has no item, and Requeue does nothing. For a
// finished run it returns ErrFinished. A run that was cancelled before the purge may need Requeue
// after its Retry.
//
// Requeue is safe at any time, also for several callers at once: members execute a run with its
// newest item only. If a member executes the run at that moment, the context of its function ends,
// and the run goes on at its first unfinished step with the next item.
//
// Requeue takes effect at most once, also if a reply or a session is lost; see Cancel. The error
// wraps framework.ErrOutcomeUnknown in the same cases. After the end of ctx the run may have
// another item; call Requeue again.
func (w *Workflows) Requeue(ctx context.Context, id string) error {
	err := w.argumentErrorOr(checkName(id))
	if err == nil {
		err = ofRun(id, w.store.requeue(ctx, id))
	}
	return failure.Wrap("requeue", w.Path(), err)
}

// Work executes runs of the registered kinds, and removes finished runs after the retention time,
// until ctx ends. Then it takes no more runs. It returns nil if all functions have returned within
// the grace (WithGrace), and else an error that wraps framework.ErrDraining. A lasting error,
// such as framework.ErrNoAuth, ends it too.
func (w *Workflows) Work(ctx context.Context) error {
	w.mu.Lock()
	functions := slices.Collect(maps.Values(w.functions))
	err := w.err
	if err == nil && len(functions) == 0 {
		err = fmt.Errorf("%w: no function is registered", errOption)
	}
	w.working = w.working || err == nil
	w.mu.Unlock()
	if err != nil {
		return failure.Wrap("work", w.Path(), err)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(functions)+1)
	var working sync.WaitGroup
	for i, f := range functions {
		working.Go(func() {
			defer cancel() // one that cannot go on ends the others
			errs[i] = (&runner{w.store, f}).work(within, w.cfg.grace)
		})
	}
	working.Go(func() {
		defer cancel()
		errs[len(functions)] = (&sweeper{w.store, w.cfg.retention, w.cfg.failedRetention}).sweepUntilEnd(within)
	})
	working.Wait()
	return failure.Wrap("work", w.Path(), errors.Join(errs...))
}

// Close closes the queues that Start, Signal and Work have used, at the same time; see
// queue.Queue.Close. Call it after Work has returned.
func (w *Workflows) Close(ctx context.Context) error {
	return failure.Wrap("close", w.Path(), w.store.close(ctx))
}
