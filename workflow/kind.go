package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// Kind is a kind of runs: its name, the type of an input and the type of a result. Declare it once,
// as a variable of a package that those who start runs share with those who execute them:
//
//	var Order = workflow.NewKind[OrderInput, Receipt]("order")
//
// A process that only starts runs registers nothing. A run waits until a member has registered the
// function of its kind. Inputs and results are stored as JSON.
type Kind[I, O any] struct{ name string }

// NewKind returns a kind. It sends no request. If the name is invalid, every call returns
// framework.ErrInvalid.
func NewKind[I, O any](name string) Kind[I, O] { return Kind[I, O]{name} }

// Name is the kind's name.
func (k Kind[I, O]) Name() string { return k.name }

// Function returns fn as the function of the kind, to be registered with Workflows.Register by
// those who execute runs.
//
// The function is called with the input of Start, and again from its beginning after each wait,
// failure and loss of its executor. What it does outside Step, Sleep, Await and Child is done again
// then. Its context ends when the delivery of the run is lost, when the run is cancelled, and at
// the end of the grace of Work; it should return soon after.
//
// The function returns the run's result; or an error that wraps ErrWaiting, to be called again when
// a wait is over; or another error, to be called again after a pause, until the attempts of
// WithRunAttempts are used up. An error of Permanent ends the run at once. A panic is an error.
// When Sleep, Await or Child has returned ErrWaiting in this call, the run waits also if the
// function returns a result, which is then dropped. An input that does not decode into I is a
// failed attempt: a member with another release may take the next one.
//
// Two releases may work side by side: a member takes only runs of kinds that it has registered, and
// finds steps by their names.
func (k Kind[I, O]) Function(fn func(ctx context.Context, run *Run, input I) (O, error),
	opts ...FunctionOption) Function {
	return newFunction(k.name, fn, opts)
}

// Start starts a run, with an input that is stored as JSON. It returns once the servers have the
// run, stored in one transaction with the item that a member takes. If Start has made a run with
// this id, kind and input before, in any state, Start does nothing and returns its Handle. A run is
// removed after its retention: from then on Start starts a run with the id again, unless the former
// one was started with WithKeptID. If a run with this id and another kind or input exists, or a
// child run with this id, it returns ErrIDInUse.
//
// Other errors wrap framework.ErrTooLarge for an input of more than MaxResult bytes,
// framework.ErrBadValue, framework.ErrInvalid, or the end of ctx: then the run may exist; call
// Start again.
func (k Kind[I, O]) Start(ctx context.Context, w *Workflows, id string, input I,
	opts ...StartOption) (Handle[O], error) {
	if w == nil {
		return Handle[O]{}, fmt.Errorf("%w: the workflows of run %q are nil", errOption, id)
	}
	uuid, err := w.start(ctx, k.name, id, input, opts)
	if err != nil {
		return Handle[O]{}, err
	}
	return Handle[O]{w, k.name, id, uuid}, nil
}

// Handle returns the handle of a run that was started elsewhere. It sends no request.
func (k Kind[I, O]) Handle(w *Workflows, id string) Handle[O] { return Handle[O]{w, k.name, id, ""} }

// Child starts a run as a child of another run and returns the child's result, which is recorded as
// that of the step with this name. The child's id is the run's id, a dot and the name. Until the
// child has finished, Child returns ErrWaiting: return that from the run's function. Then the run
// waits on the servers, without an executor. In a function of Parallel, Child itself waits as long
// as another function works.
//
// If the child has failed, Child returns ErrFailed. If it was cancelled, Child returns
// ErrCancelled. Both are marked as Permanent: a function that returns one of them ends its run as
// failed. To go on after that, retry the child, and then this run. A child stays as long as its
// parent. Cancelling a run does not cancel its children.
//
// The first call starts the child with its kind and input; the child keeps the input, also if a
// later release calls Child with another one. If the child has another kind or parent, the error
// wraps ErrIDInUse. If a former run of this id has left a child of this name, that is removed once
// it has finished, and the run waits until then: cancel it to go on.
//
// If no member knows the kind, Child returns framework.ErrNotFound, and there is no child.
func (k Kind[I, O]) Child(ctx context.Context, run *Run, name string, input I) (O, error) {
	var none O
	if run == nil || run.stepRecorder == nil {
		return none, fmt.Errorf("%w: the run that has child %q is nil", errOption, name)
	}
	err := checkName(name)
	var raw json.RawMessage
	if err == nil && !run.IsRecorded(name) {
		raw, err = run.childResult(ctx, name, k.name, input)
	}
	if err != nil {
		return none, failure.Wrap("child", run.ledger.path, fmt.Errorf("%q: %w", name, err))
	}
	raw, err = Step(ctx, run, name, func(context.Context, Key) (json.RawMessage, error) { return raw, nil })
	if err != nil {
		return none, err
	}
	result, err := decodeResult[O](raw)
	return result, failure.Wrap("child", run.ledger.stepNode(name), err)
}

// Handle is a run of a kind with results of type O. Kind.Start and Kind.Handle return one.
type Handle[O any] struct {
	workflows *Workflows
	kind, id  string
	uuid      string // of the run that Start has made or found; or ""
}

// ID is the run's id.
func (h Handle[O]) ID() string { return h.id }

// Wait waits until the run has finished and returns its result. For a failed run it returns
// ErrFailed, for a cancelled one ErrCancelled, both with the reason. If the result does not decode
// into O, it returns framework.ErrBadValue. If no run has the id, or the run is removed during the
// wait, it returns framework.ErrNotFound; with a handle of Start also if the run was removed
// before, and its id is used again. If the run has another kind, it returns ErrIDInUse.
func (h Handle[O]) Wait(ctx context.Context) (O, error) {
	var none O
	if h.workflows == nil {
		return none, fmt.Errorf("%w: a Handle must be made by Kind.Start or Kind.Handle", errOption)
	}
	err := checkName(h.kind)
	if err == nil {
		err = checkName(h.id)
	}
	var report Report
	if err = h.workflows.argumentErrorOr(err); err == nil {
		report, err = h.workflows.wait(ctx, h.id, h.uuid)
	}
	if err == nil && report.Kind != h.kind {
		err = fmt.Errorf("%w: run %q has kind %q, not %q", ErrIDInUse, h.id, report.Kind, h.kind)
	}
	if err == nil {
		err = storedRun{id: h.id, runRecord: runRecord{State: report.State, Error: report.Error}}.outcome()
	}
	var result O
	if err == nil {
		result, err = decodeResult[O](report.Result)
	}
	if err != nil {
		return none, failure.Wrap("wait", h.workflows.Path(), err)
	}
	return result, nil
}

// decodeResult decodes the result of a run.
func decodeResult[O any](data json.RawMessage) (O, error) {
	var result, none O
	if err := json.Unmarshal(data, &result); err != nil {
		return none, fmt.Errorf("%w: %s does not decode into %T: %w", errResult, shortenResult(data), result, err)
	}
	return result, nil
}
