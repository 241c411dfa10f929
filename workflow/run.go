package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Run is work in steps that this process executes: a ledger that it has opened, or a run of Workflows. Its steps may run at once, each under its own name.
type Run struct {
	ledger   *Ledger
	executor Executor
	id       string
	own      string    // tells this Run's records from those of others
	state    *runState // of a run that Workflows executes; nil for a Ledger's

	mu      sync.Mutex
	results map[string][]byte // of the recorded steps
	size    int               // of these results and those that are being recorded
	names   map[string]nameState
}

// nameState is what this Run has done with a step's name.
type nameState int

const (
	unused    nameState = iota
	used                // the step is under way, or has returned its result
	uncertain           // its record may be on the servers
)

// ID is the run's identity: unique, and the same for all executors until the ledger is removed.
func (r *Run) ID() string { return r.id }

// Name is the id that the run was started with, or the path of a ledger.
func (r *Run) Name() string {
	if r.state != nil {
		return r.state.stored.name
	}
	return r.ledger.path
}

// IsRecorded reports whether the step has a record.
func (r *Run) IsRecorded(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.results[name]
	return ok
}

// Key tells an effect apart from others.
type Key struct {
	// ID is made of the run's identity and the step's name. It is the same each time the step is run, by any executor, and no other step of any run has it. Give it to
	// what the step calls as its idempotency key.
	ID string
	// Token is the executor's fencing token. What the step changes should remember the highest token and refuse lower ones.
	Token int64
	// Attempt counts from 1 how often this executor has run the step.
	Attempt int
}

// Step returns the recorded result of the run's step with this name. If there is none, it runs fn and records its result as JSON, under the executor's guard. The result is what
// the record says, also the first time: fields that JSON leaves out are lost.
//
// fn's context ends with ctx, with the executor and after WithTimeout. An error of fn is returned, wrapped, after the attempts of WithRetry; nothing is recorded and
// the step may be called again. A panic is an error (ErrPanic).
//
// If the error wraps ErrEnded or that of ctx, fn may have had its effect, and the record may or may not be written: Open tells. If it wraps
// framework.ErrTooLarge, the result is not recorded: store it elsewhere and return its place. Other errors: ErrRepeated, ErrResult, ErrConflict, ErrRemoved.
func Step[T any](ctx context.Context, run *Run, name string, fn func(ctx context.Context, key Key) (T, error), opts ...StepOption) (T, error) {
	var result, none T
	if run == nil || fn == nil {
		return none, fmt.Errorf("%w: the run or the function of step %q is nil", ErrOption, name)
	}
	encoded := func(ctx context.Context, key Key) ([]byte, error) {
		made, err := fn(ctx, key)
		if err != nil {
			return nil, err
		}
		data, err := encodeResult(made)
		return data, Permanent(err)
	}
	decode := func(data []byte) error {
		var recorded T
		if err := json.Unmarshal(data, &recorded); err != nil {
			return fmt.Errorf("%w: %s is no %T: %w", ErrResult, shortenResult(data), recorded, err)
		}
		result = recorded
		return nil
	}
	if err := checkName(name); err != nil { // before it is printed as part of a path
		return none, failure.Wrap("step", run.ledger.path, err)
	}
	if err := run.runStep(ctx, name, encoded, decode, opts); err != nil {
		return none, failure.Wrap("step", run.ledger.stepNode(name), err)
	}
	return result, nil
}

// Do is Step for a function without a result.
func (r *Run) Do(ctx context.Context, name string, fn func(ctx context.Context, key Key) error, opts ...StepOption) error {
	_, err := Step(ctx, r, name, func(ctx context.Context, key Key) (any, error) { return nil, fn(ctx, key) }, opts...)
	return err
}

// runStep is Step, with results as JSON.
func (r *Run) runStep(ctx context.Context, name string, fn func(context.Context, Key) ([]byte, error), decode func([]byte) error, opts []StepOption) (err error) {
	cfg, err := recipe.ApplyOptions(stepDefaults(), opts)
	if err != nil {
		return err
	}
	before, err := r.beginName(name)
	if err != nil {
		return err
	}
	after := before
	defer func() { r.finishName(name, after) }()
	if before == uncertain {
		if err := r.readRecord(ctx, name); err != nil {
			return err
		}
	}
	if result, ok := r.recordedResult(name); ok {
		if err := decode(result); err != nil {
			return err
		}
		after = used
		return nil
	}
	ctx, end := r.ledger.tel.startStep(ctx, r.ledger.path, name, r.executor.Token())
	defer func() { end(err) }()
	record, err := r.runAttempts(ctx, cfg, name, fn)
	if err != nil {
		return err
	}
	if err := decode(record.Result); err != nil { // so that no record is written that nobody can read
		return err
	}
	after = uncertain
	recorded, err := r.writeRecord(ctx, name, record)
	if err != nil {
		return err
	}
	if err := decode(recorded); err != nil {
		return err
	}
	after = used
	return nil
}

// beginName marks the name as used, and returns what it was before.
func (r *Run) beginName(name string) (nameState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.names[name]
	if before == used {
		return before, ErrRepeated
	}
	if _, ok := r.results[name]; !ok && r.countSteps() >= MaxSteps {
		return before, fmt.Errorf("%w: the ledger has %d steps and may have no more", framework.ErrTooLarge, MaxSteps)
	}
	r.names[name] = used
	return before, nil
}

// countSteps counts the steps that have records or are under way. r.mu is held.
func (r *Run) countSteps() int {
	steps := len(r.results)
	for name, state := range r.names {
		if _, ok := r.results[name]; !ok && state == used {
			steps++
		}
	}
	return steps
}

// finishName marks the name.
func (r *Run) finishName(name string, after nameState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = after
}

func (r *Run) recordedResult(name string) (result []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, ok = r.results[name]
	return result, ok
}

// runAttempts runs fn until it succeeds, as often as cfg says. It returns the record to write.
func (r *Run) runAttempts(ctx context.Context, cfg stepOptions, name string, fn func(context.Context, Key) ([]byte, error)) (stepRecord, error) {
	within, stop := whileExecuting(ctx, r.executor)
	defer stop()
	key := Key{ID: r.id + "-" + name, Token: r.executor.Token()}
	pauses := backoff.New(cfg.firstPause, longestPause)
	var failed error
	for {
		if err := r.whyEnded(ctx, failed); err != nil {
			return stepRecord{}, err
		}
		key.Attempt++
		began := time.Now()
		result, err := r.callFunction(within, cfg.timeout, name, key, fn)
		if err == nil {
			return stepRecord{result, key.Token, key.Attempt, time.Since(began).Milliseconds(), r.own}, nil
		}
		failed = err
		var permanent *permanentError
		switch {
		case r.whyEnded(ctx, nil) != nil:
			continue
		case key.Attempt >= cfg.attempts || errors.As(err, &permanent):
			return stepRecord{}, err
		}
		r.ledger.client.Logger().Warn("a step has failed and is tried again", "path", r.ledger.path, "step", name, "attempt", key.Attempt, "error", err)
		_ = pauses.Pause(within) // why it ended is seen above
	}
}

// whyEnded is nil while ctx and the executor last. It asks them and not a context that ends with both: such a one ends a moment later. failed is with what the step
// failed, or nil.
func (r *Run) whyEnded(ctx context.Context, failed error) error {
	var why error
	switch {
	case r.executor.Context().Err() != nil:
		why = endedError(r.executor)
	case ctx.Err() != nil:
		why = failure.Ended(ctx)
	default:
		return nil
	}
	if failed == nil || errors.Is(why, failed) {
		return why
	}
	return fmt.Errorf("%w (the step failed: %w)", why, failed)
}

// callFunction calls fn once, within its timeout. A panic is an error.
func (r *Run) callFunction(ctx context.Context, timeout time.Duration, name string, key Key, fn func(context.Context, Key) ([]byte, error)) (result []byte, err error) {
	if timeout > 0 {
		within, cancel := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
		defer cancel()
		defer func() {
			if err != nil && errors.Is(context.Cause(within), ErrTimeout) {
				err = fmt.Errorf("%w, more than %v: %w", ErrTimeout, timeout, err)
			}
		}()
		ctx = within
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, v)
			r.ledger.client.Logger().Error("a step panicked", "path", r.ledger.path, "step", name, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	return fn(ctx, key)
}

// writeRecord writes the record of a step, in one transaction with the guard. It returns the result that is recorded, which an earlier call of this Run may have sent.
func (r *Run) writeRecord(ctx context.Context, name string, record stepRecord) (result []byte, err error) {
	reserved := len(record.Result)
	if err := r.reserveSize(reserved); err != nil {
		return nil, err
	}
	defer r.returnSize(reserved)
	data, err := encodeRecord(record)
	if err != nil {
		return nil, err
	}
	node := r.ledger.stepNode(name)
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		_, err := s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node, data, framework.Persistent))...)
		switch {
		case isGuardRefusal(r.executor, err):
			return err
		case errors.Is(err, framework.ErrNoNode):
			return ErrRemoved
		case errors.Is(err, framework.ErrNodeExists):
			record, err = r.readOwnRecord(ctx, s, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.noteResult(name, record.Result)
	return record.Result, nil
}

// readRecord reads a step's record after an earlier call left open whether it was written.
func (r *Run) readRecord(ctx context.Context, name string) error {
	return r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		if err := s.Sync(ctx, r.ledger.path); err != nil {
			return err
		}
		record, err := r.readOwnRecord(ctx, s, name)
		if errors.Is(err, framework.ErrNoNode) {
			return nil
		}
		if err == nil {
			r.noteResult(name, record.Result)
		}
		return err
	})
}

// readOwnRecord reads a step's record, which this Run must have written.
func (r *Run) readOwnRecord(ctx context.Context, s *framework.Session, name string) (stepRecord, error) {
	node := r.ledger.stepNode(name)
	data, _, err := s.Get(ctx, node)
	if err != nil {
		return stepRecord{}, err
	}
	record, err := parseStep(node, data)
	if err == nil && record.By != r.own {
		err = ErrConflict
	}
	return record, err
}

// reserveSize reserves room for a result of so many bytes, until returnSize.
func (r *Run) reserveSize(bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := r.size + bytes; size > MaxResults {
		return fmt.Errorf("%w: with a result of %d bytes the ledger has %d bytes of results, it may have %d: store the result elsewhere and return its place",
			framework.ErrTooLarge, bytes, size, MaxResults)
	}
	r.size += bytes
	return nil
}

func (r *Run) returnSize(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size -= bytes
}

// noteResult notes that the step has this record.
func (r *Run) noteResult(name string, result []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += len(result) - len(r.results[name])
	r.results[name] = result
}

// encodeResult encodes what a step has returned.
func encodeResult(result any) ([]byte, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	if len(data) > MaxResult {
		return nil, fmt.Errorf("%w: the result has %d bytes, it may have %d: store it elsewhere and return its place", framework.ErrTooLarge, len(data), MaxResult)
	}
	return data, nil
}
