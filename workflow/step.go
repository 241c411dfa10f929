package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// Recorder runs steps for one executor and records them: an *OpenLedger, or the *Run with which a
// Kind's function is called. No other type can be one. Steps may run at once, each under its own
// name.
type Recorder interface {
	// UUID is the random id of the ledger or the run, made when that was created. All executors see
	// the same one, and no other ledger or run ever has it, also if the path or the run's id is
	// used again.
	UUID() string
	// IsRecorded reports whether the step has a record: of its result, or of its permanent failure.
	IsRecorded(name string) bool
	// Do is Step for a function without a result.
	Do(ctx context.Context, name string, fn func(ctx context.Context, key Key) error, opts ...StepOption) error
	// Parallel calls functions at once and waits until all have returned. Each may run steps, and
	// wait if the Recorder is a Run. If functions fail, Parallel returns their errors, joined.
	// Otherwise, if one returns ErrWaiting, Parallel returns ErrWaiting: the run waits until the
	// first of the waits is over, and its function is called again. A panic is an error
	// (framework.ErrPanic).
	//
	// As long as another function works, Sleep, Await and Child with the context that Parallel has
	// passed wait in the process, and the function goes on when its wait is over. They return
	// ErrWaiting when all functions have returned or wait. Within a step they return ErrWaiting at
	// once.
	Parallel(ctx context.Context, functions ...func(context.Context) error) error

	recorder() *stepRecorder
}

// stepRecorder is a Recorder on the node of a ledger or a run.
type stepRecorder struct {
	ledger     *Ledger // its node has the records; a run's node has them in the same form
	executor   Executor
	uuid       string
	claim      runClaim
	recorderID string // a random id in the records that this recorder writes: it tells them from those of others
	branches   *branches
	recorded   func() // called when a step was recorded, or nil

	mu      sync.Mutex
	records map[string]stepRecord
	size    int // of the results in these records and of those that are being recorded
	names   map[string]nameState
	// the names in use that have no record yet
	unrecorded map[string]bool
}

func newStepRecorder(l *Ledger, e Executor, id string) *stepRecorder {
	return &stepRecorder{ledger: l, executor: e, uuid: id, recorderID: uuid.NewString(), branches: newBranches(),
		records: map[string]stepRecord{}, names: map[string]nameState{}, unrecorded: map[string]bool{}}
}

func (r *stepRecorder) recorder() *stepRecorder { return r }

// recorderOf returns what a Recorder records steps with, or nil if the Recorder is nil or was not
// made by this package.
func recorderOf(in Recorder) *stepRecorder {
	if isNil(in) {
		return nil
	}
	return in.recorder()
}

// nameState is what this recorder has done with a step's name.
type nameState int

const (
	unused    nameState = iota
	used                // the step is under way, or has returned its result
	uncertain           // its record may be on the servers
)

// UUID is the random id of the ledger or the run, which is never used again.
func (r *stepRecorder) UUID() string { return r.uuid }

// IsRecorded reports whether the step has a record.
func (r *stepRecorder) IsRecorded(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.records[name]
	return ok
}

// Key tells an effect apart from others.
type Key struct {
	// ID is made of the UUID of the ledger or the run and the step's name. It is the same each time
	// the step is run, by any executor, and no other step has it. Pass it as the idempotency key to
	// the service that the step calls.
	ID string
	// Token is the executor's fencing token. A data store that the step changes should remember the
	// highest token and refuse lower ones.
	Token int64
	// Attempt counts from 1 how often this executor has run the step.
	Attempt int
}

// Step returns the recorded result of the step with this name in an open ledger or a run. Without a
// record, it runs fn and records the result as JSON, under the executor's guard. The result is what
// the record says, also the first time: fields that JSON leaves out are lost.
//
// fn's context ends with ctx, with the executor and after WithTimeout. An error of fn is returned,
// wrapped, after the attempts of WithStepAttempts; it leaves no record, and the step may be called
// again, also by the next attempt of a run. A panic is an error (framework.ErrPanic).
//
// A step fails permanently if fn returns an error of Permanent or WithPermanentErrors, or if its
// attempts are used up and it has WithRecordedFailure. Then the failure is recorded as a result is,
// and Step returns ErrStepFailed, which is also Permanent: in this call and in each later one, by
// any executor, with the same text and the same error of WithPermanentErrors. Other errors that fn
// has wrapped are not found in it, also the first time. An error is never recorded that says
// nothing of the work: the end of ctx or of the executor, ErrWaiting, and framework's
// ErrSessionLost, ErrSuspended, ErrOutcomeUnknown, ErrUnconfirmed and framework.ErrClosed.
//
// If the error wraps ErrEnded or that of ctx, fn may have had its effect, and the record may have
// been written: the next call of Open reads it. If the error wraps framework.ErrTooLarge, the
// result is not recorded: store it elsewhere and return a reference to it. Other errors:
// framework.ErrInvalid, framework.ErrBadValue, framework.ErrConflict, ErrRemoved.
func Step[T any](ctx context.Context, in Recorder, name string, fn func(ctx context.Context, key Key) (T, error),
	opts ...StepOption) (T, error) {
	var result, none T
	r := recorderOf(in)
	if r == nil || fn == nil {
		return none, fmt.Errorf("%w: the run, the open ledger or the function of step %q is nil", errOption, name)
	}
	encoded := func(ctx context.Context, key Key) ([]byte, error) {
		made, err := fn(ctx, key)
		if err != nil {
			return nil, err
		}
		return encodeReturned(made)
	}
	decode := func(data []byte) error {
		var recorded T
		if err := json.Unmarshal(data, &recorded); err != nil {
			return fmt.Errorf("%w: %s does not decode into %T: %w", errResult, shortenResult(data), recorded, err)
		}
		result = recorded
		return nil
	}
	if err := checkName(name); err != nil { // before it is printed as part of a path
		return none, failure.Wrap("step", r.ledger.path, err)
	}
	if err := r.runStep(ctx, name, encoded, decode, opts); err != nil {
		return none, failure.Wrap("step", r.ledger.stepNode(name), err)
	}
	return result, nil
}

// Do is Step for a function without a result.
func (r *stepRecorder) Do(ctx context.Context, name string, fn func(ctx context.Context, key Key) error,
	opts ...StepOption) error {
	_, err := Step(ctx, r, name, func(ctx context.Context, key Key) (any, error) { return nil, fn(ctx, key) }, opts...)
	return err
}

// Parallel calls functions at once and waits until all have returned; see Recorder.
func (r *stepRecorder) Parallel(ctx context.Context, functions ...func(context.Context) error) error {
	errs := make([]error, len(functions))
	ctx, finish := r.branches.begin(ctx, len(functions))
	var running sync.WaitGroup
	for i, f := range functions {
		running.Go(func() {
			defer finish()
			errs[i] = usercode.Call(r.ledger.client.Logger(), errPanic, "a parallel function",
				[]any{"path", r.ledger.path},
				func() error { return f(ctx) })
		})
	}
	running.Wait()
	var failed []error
	waiting := false
	for _, err := range errs {
		if errors.Is(err, ErrWaiting) {
			waiting = true
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == 0 && waiting {
		return ErrWaiting
	}
	return errors.Join(failed...)
}

// runStep is Step, with results as JSON.
func (r *stepRecorder) runStep(ctx context.Context, name string, fn func(context.Context, Key) ([]byte, error),
	decode func([]byte) error, opts []StepOption) (err error) {
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
	if record, ok := r.recordOf(name); ok {
		if err := cfg.outcome(record, decode); err != nil {
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
	if record.Failure == nil {
		if err := decode(record.Result); err != nil { // so that no record is written that no executor can read
			return Permanent(err)
		}
	}
	after = uncertain
	recorded, err := r.writeRecord(ctx, name, record)
	if err != nil && record.Failure != nil {
		return fmt.Errorf("%w (the step failed: %s)", err, record.Failure.Text)
	}
	if err == nil {
		err = cfg.outcome(recorded, decode)
	}
	if err != nil {
		return err
	}
	after = used
	return nil
}

// outcome decodes the result of a record, or returns the error of a step that has failed
// permanently.
func (o stepOptions) outcome(record stepRecord, decode func([]byte) error) error {
	if record.Failure == nil {
		return decode(record.Result)
	}
	return Permanent(&stepError{*record.Failure, o.permanentErrors})
}

// beginName marks the name as used, and returns what it was before.
func (r *stepRecorder) beginName(name string) (nameState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.names[name]
	if before == used {
		return before, errRepeated
	}
	if _, ok := r.records[name]; !ok {
		if r.countSteps() >= MaxSteps {
			return before, fmt.Errorf("%w: there are %d steps, and there may be no more", framework.ErrTooLarge,
				MaxSteps)
		}
		r.unrecorded[name] = true
	}
	r.names[name] = used
	return before, nil
}

// countSteps counts the steps that have records or are under way. r.mu is held.
func (r *stepRecorder) countSteps() int { return len(r.records) + len(r.unrecorded) }

// finishName sets the state of a name after its step.
func (r *stepRecorder) finishName(name string, after nameState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = after
	delete(r.unrecorded, name) // a used name has a record
}

func (r *stepRecorder) recordOf(name string) (record stepRecord, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, ok = r.records[name]
	return record, ok
}

// runAttempts runs fn until it succeeds, as often as cfg says. It returns the record to write: of a
// result, or of a permanent failure.
func (r *stepRecorder) runAttempts(ctx context.Context, cfg stepOptions, name string,
	fn func(context.Context, Key) ([]byte, error)) (stepRecord, error) {
	within, stop := whileExecuting(r.branches.withOrigin(ctx, inStep), r.executor)
	defer stop()
	key := Key{ID: r.uuid + "-" + name, Token: r.executor.Token()}
	pauses := backoff.New(cfg.firstPause, longestPause)
	var failed error
	for {
		if err := r.whyEnded(ctx, failed); err != nil {
			return stepRecord{}, err
		}
		key.Attempt++
		began := time.Now()
		result, err := r.callFunction(within, cfg.timeout, name, key, fn)
		record := stepRecord{Result: result, Token: key.Token, Attempts: key.Attempt,
			Millis: time.Since(began).Milliseconds(), By: r.recorderID, runClaim: r.claim}
		if err == nil {
			return record, nil
		}
		failed = err
		isLast := key.Attempt >= cfg.attempts
		switch isPermanent := cfg.isPermanent(err); {
		case r.whyEnded(ctx, nil) != nil:
			continue
		case (isPermanent || isLast && cfg.recordsFailure) && !saysNothingOfTheWork(err):
			record.Result, record.Failure = nil, cfg.failureOf(err)
			return record, nil
		case isPermanent || isLast || errors.Is(err, ErrWaiting): // a wait is no failure
			return stepRecord{}, err
		}
		r.ledger.client.Logger().Warn("a step has failed and is tried again", "path", r.ledger.path, "step", name,
			"attempt", key.Attempt, "error", err)
		_ = pauses.Pause(within) // whyEnded notices an end of within
	}
}

// whyEnded is nil while ctx and the executor last. It asks them, since a context that is derived
// from both ends a moment later. failed is the error of the step's latest attempt, or nil.
func (r *stepRecorder) whyEnded(ctx context.Context, failed error) error {
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

// callFunction calls fn once, within its timeout. A panic, and the end of its goroutine, are
// errors.
func (r *stepRecorder) callFunction(ctx context.Context, timeout time.Duration, name string, key Key,
	fn func(context.Context, Key) ([]byte, error)) (result []byte, err error) {
	if timeout > 0 {
		within, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
		defer func() {
			if err != nil && errors.Is(context.Cause(within), errTimeout) {
				err = fmt.Errorf("%w, more than %v: %w", errTimeout, timeout, err)
			}
		}()
		ctx = within
	}
	err = usercode.Call(r.ledger.client.Logger(), errPanic, "a step", []any{"path", r.ledger.path, "step", name},
		func() (err error) {
			result, err = fn(ctx, key)
			return err
		})
	return result, err
}

// writeRecord writes the record of a step, in one transaction with the guard. It returns what is
// recorded, which an earlier call of this recorder may have sent.
func (r *stepRecorder) writeRecord(ctx context.Context, name string, record stepRecord) (_ stepRecord, err error) {
	reserved := len(record.Result)
	if err := r.reserveSize(reserved); err != nil {
		return stepRecord{}, err
	}
	defer func() {
		if err != nil {
			r.returnSize(reserved)
		}
	}()
	data, err := record.encode()
	if err != nil {
		return stepRecord{}, err
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
		return stepRecord{}, err
	}
	r.addReservedRecord(name, record, reserved)
	if r.recorded != nil {
		r.recorded()
	}
	return record, nil
}

// readRecord reads a step's record if there is one. An earlier call does not know whether its
// record was written.
func (r *stepRecorder) readRecord(ctx context.Context, name string) error {
	return r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		if err := s.Sync(ctx, r.ledger.path); err != nil {
			return err
		}
		record, err := r.readOwnRecord(ctx, s, name)
		if errors.Is(err, framework.ErrNoNode) {
			return nil
		}
		if err == nil {
			r.addRecord(name, record)
		}
		return err
	})
}

// readOwnRecord reads a step's record, which this recorder must have written.
func (r *stepRecorder) readOwnRecord(ctx context.Context, s *framework.Session, name string) (stepRecord, error) {
	node := r.ledger.stepNode(name)
	data, _, err := s.Get(ctx, node)
	if err != nil {
		return stepRecord{}, err
	}
	record, err := parseStep(node, data)
	if err == nil && record.By != r.recorderID {
		err = errConflict
	}
	return record, err
}

// reserveSize reserves room for a result of so many bytes, until returnSize.
func (r *stepRecorder) reserveSize(bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := r.size + bytes; size > MaxResults {
		return Permanent(fmt.Errorf(
			"%w: with a result of %d bytes there are %d bytes of results, there may be %d: store the result "+
				"elsewhere and return a reference to it",
			framework.ErrTooLarge, bytes, size, MaxResults))
	}
	r.size += bytes
	return nil
}

func (r *stepRecorder) returnSize(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size -= bytes
}

// addRecord says that the step has this record.
func (r *stepRecorder) addRecord(name string, record stepRecord) {
	r.addReservedRecord(name, record, 0)
}

// addReservedRecord is addRecord for a result with reserved room, which it uses up.
func (r *stepRecorder) addReservedRecord(name string, record stepRecord, reserved int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += len(record.Result) - len(r.records[name].Result) - reserved
	r.records[name] = record
	delete(r.unrecorded, name)
}

// encodeValue encodes an input, a signal or a result as JSON of at most so many bytes.
func encodeValue(what string, value any, limit int) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%w: the %s: %w", errResult, what, err)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%w: the %s has %d bytes, it may have %d: store it elsewhere and use a reference to it",
			framework.ErrTooLarge, what, len(data), limit)
	}
	return data, nil
}

// encodeReturned encodes what the function of a step or a run has returned.
func encodeReturned(result any) ([]byte, error) {
	data, err := encodeResult(result)
	if err != nil {
		return nil, &permanentError{err, true}
	}
	return data, nil
}

func encodeResult(result any) ([]byte, error) { return encodeValue("result", result, MaxResult) }
