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
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Sleep lets the run wait for at least d since this sleep, known by its name, was called first. The run waits on the servers, with no executor. Sleep returns
// nil when the time is over, and else ErrWaiting: return that from the run's function. Times are by the ensemble's clock, and are rounded up to a second.
//
// Only runs of Workflows can sleep. A second Sleep of the same name in one call of the function is ErrRepeated.
func (r *Run) Sleep(ctx context.Context, name string, d time.Duration) error {
	err := r.checkWait(name)
	if err == nil && (d < 0 || d > maxWait) {
		err = fmt.Errorf("%w: %v, it must be from 0 to %v", ErrOption, d, maxWait)
	}
	if err != nil {
		return failure.Wrap("sleep", r.ledger.path, err)
	}
	over, until, err := r.runTimer(ctx, name, d)
	if err == nil && !over {
		err = r.state.addWait(runWait{Until: until.UnixMilli()})
	}
	return failure.Wrap("sleep", r.timerNode(name), err)
}

// checkWait refuses waits of a ledger, and names that cannot be used.
func (r *Run) checkWait(name string) error {
	if r.state == nil {
		return fmt.Errorf("%w: only runs of Workflows can wait, and a Ledger's cannot", ErrOption)
	}
	return checkName(name)
}

func (r *Run) timerNode(name string) string { return znode.Join(r.ledger.path, timerPrefix+name) }

func (r *Run) signalNode(name string) string { return znode.Join(r.ledger.path, signalPrefix+name) }

// runTimer begins a timer, or finds the one that has begun, and reports whether it is over.
func (r *Run) runTimer(ctx context.Context, name string, d time.Duration) (over bool, until time.Time, err error) {
	until, begun, err := r.state.useTimer(name)
	if err != nil {
		return false, until, err
	}
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		if !begun {
			if until, err = r.beginTimer(ctx, s, name, d); err != nil {
				return err
			}
			begun = true
		}
		now, err := r.state.store.now(ctx, s)
		over = !now.Before(until)
		return err
	})
	return over, until, err
}

// beginTimer makes a timer's node, unless an earlier try has made it.
func (r *Run) beginTimer(ctx context.Context, s *framework.Session, name string, d time.Duration) (until time.Time, err error) {
	data, err := encodeRecord(timerRecord{Millis: d.Milliseconds()})
	if err != nil {
		return until, err
	}
	node := r.timerNode(name)
	_, err = s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node, data, framework.Persistent))...)
	if err != nil && (isGuardRefusal(r.executor, err) || !errors.Is(err, framework.ErrNodeExists)) {
		return until, err
	}
	data, stat, err := s.Get(ctx, node)
	if err != nil {
		return until, err
	}
	timer, err := parseTimer(node, data)
	return timer.until(stat), err
}

// Await returns the data of a signal that was sent to the run with Workflows.Signal. If it has not come, the run waits on the servers, with no executor, and Await returns
// ErrWaiting: return that from the run's function. If timeout is not 0 and the signal has not come in that time since this Await was called first, Await returns
// ErrTimeout, then and each time the function is called again; a signal that comes later is refused.
//
// Each signal of a run has a name of its own, which the timers of Sleep do not have. Data that does not decode into T is ErrResult.
func Await[T any](ctx context.Context, run *Run, signal string, timeout time.Duration) (T, error) {
	var data, none T
	if run == nil {
		return none, fmt.Errorf("%w: the run that awaits %q is nil", ErrOption, signal)
	}
	raw, err := run.awaitSignal(ctx, signal, timeout)
	if err == nil {
		if err = json.Unmarshal(raw, &data); err != nil {
			err = fmt.Errorf("%w: %s is no %T: %w", ErrResult, shortenResult(raw), data, err)
		}
	}
	if err != nil {
		return none, failure.Wrap("await", run.signalNode(signal), err)
	}
	return data, nil
}

func (r *Run) awaitSignal(ctx context.Context, name string, timeout time.Duration) (json.RawMessage, error) {
	if err := r.checkWait(name); err != nil {
		return nil, err
	}
	if timeout < 0 || timeout > maxWait {
		return nil, fmt.Errorf("%w: timeout %v, it must be from 0 to %v", ErrOption, timeout, maxWait)
	}
	signal, come := r.state.signal(name)
	w := runWait{Signal: name}
	if !come && timeout > 0 {
		over, until, err := r.runTimer(ctx, name, timeout)
		if err != nil {
			return nil, err
		}
		if w.Until = until.UnixMilli(); over {
			if signal, err = r.settleSignal(ctx, name); err != nil {
				return nil, err
			}
			come = true
		}
	}
	switch {
	case !come: // no operation says that a node is missing, but a create and a delete do
		node := r.signalNode(name)
		return nil, r.state.addWait(w, framework.CreateOp(node, nil, framework.Persistent), framework.DeleteOp(node, framework.AnyVersion))
	case signal.TimedOut:
		return nil, fmt.Errorf("%w: no signal %q within %v", ErrTimeout, name, timeout)
	}
	return signal.Data, nil
}

// settleSignal makes the node which says that a signal has timed out. If the signal comes first, it returns the signal.
func (r *Run) settleSignal(ctx context.Context, name string) (signal signalRecord, err error) {
	node := r.signalNode(name)
	timedOut, err := encodeRecord(signalRecord{TimedOut: true})
	if err != nil {
		return signal, err
	}
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		_, err := s.Multi(ctx, append(guardsOf(r.executor), framework.CreateOp(node, timedOut, framework.Persistent))...)
		if err != nil && (isGuardRefusal(r.executor, err) || !errors.Is(err, framework.ErrNodeExists)) {
			return err
		}
		data, _, err := s.Get(ctx, node)
		if err == nil {
			signal, err = parseSignal(node, data)
		}
		return err
	})
	if err == nil {
		r.state.noteSignal(name, signal)
	}
	return signal, err
}

// Child starts a run as a child of this run and returns its result, which is recorded as that of the step with this name. The child's id is the run's id, a dot and the
// name. Until the child has finished, the run waits on the servers, with no executor, and Child returns ErrWaiting: return that from the run's function.
//
// A child that has failed or was cancelled is ErrFailed or ErrCancelled, marked as Permanent. Cancelling a run does not cancel its children.
func Child[O any](ctx context.Context, run *Run, name, kind string, input any) (O, error) {
	var result, none O
	if run == nil {
		return none, fmt.Errorf("%w: the run that has child %q is nil", ErrOption, name)
	}
	err := run.checkWait(name)
	var raw json.RawMessage
	if err == nil && !run.IsRecorded(name) {
		raw, err = run.childResult(ctx, name, kind, input)
	}
	if err != nil {
		return none, failure.Wrap("child", run.ledger.path, fmt.Errorf("%q: %w", name, err))
	}
	raw, err = Step(ctx, run, name, func(context.Context, Key) (json.RawMessage, error) { return raw, nil })
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return none, failure.Wrap("child", run.ledger.stepNode(name), fmt.Errorf("%w: %s is no %T: %w", ErrResult, shortenResult(raw), result, err))
	}
	return result, nil
}

// childResult starts a child, or finds it, and returns its result.
func (r *Run) childResult(ctx context.Context, name, kind string, input any) (json.RawMessage, error) {
	data, err := encodeResult(input)
	if err != nil {
		return nil, err
	}
	id := r.state.stored.name + "." + name
	for _, of := range []string{id, kind} {
		if err := checkName(of); err != nil {
			return nil, err
		}
	}
	child, err := r.state.store.start(ctx, id, runRecord{Workflow: kind, Input: data, Parent: &parentRun{r.state.stored.name, r.state.stored.ID}, Trace: r.state.stored.Trace})
	if err != nil {
		return nil, err
	}
	if !child.State.IsFinished() {
		return nil, r.state.addWait(runWait{Child: id}, child.unchanged())
	}
	return child.Result, Permanent(child.outcome())
}

// outcome is the error of a finished run that has no result.
func (r storedRun) outcome() error {
	switch r.State {
	case Failed:
		return fmt.Errorf("%w: %s: %s", ErrFailed, r.name, r.Error)
	case Cancelled:
		return fmt.Errorf("%w: %s: %s", ErrCancelled, r.name, r.Error)
	}
	return nil
}

// Parallel calls functions at once and waits until all have returned. Each may take steps, sleep, await and have children. If functions fail, Parallel returns their
// errors, joined. Else, if one has to wait, it returns ErrWaiting: the run waits until one of the waits is over, and is then called again. A panic is an error.
func (r *Run) Parallel(ctx context.Context, functions ...func(context.Context) error) error {
	errs := make([]error, len(functions))
	var running sync.WaitGroup
	for i, f := range functions {
		running.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					errs[i] = fmt.Errorf("%w: %v", ErrPanic, v)
					r.ledger.client.Logger().Error("a parallel function of a run panicked", "path", r.ledger.path, "panic", v, "stack", string(debug.Stack()))
				}
			}()
			errs[i] = f(ctx)
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

// openStoredRun makes the Run of an executor from what is below the run's node.
func openStoredRun(ctx context.Context, s *framework.Session, st *runStore, r storedRun, e Executor, own string) (*Run, error) {
	run := &Run{ledger: &Ledger{client: st.client, path: r.node, tel: st.tel}, executor: e, id: r.ID, own: own, results: map[string][]byte{}, names: map[string]nameState{},
		state: &runState{store: st, stored: r, timers: map[string]time.Time{}, signals: map[string]signalRecord{}, used: map[string]bool{}}}
	if r.stat.NumChildren == 0 {
		return run, nil
	}
	children, err := st.children(ctx, s, r.node)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, recipe.ErrAgain
	}
	if err != nil {
		return nil, err
	}
	return run, run.noteChildren(children)
}

// noteChildren takes in the nodes below a run.
func (r *Run) noteChildren(children []childNode) error {
	r.state.nodes = len(children)
	for _, c := range children {
		node := znode.Join(r.ledger.path, c.name)
		switch kind, name := splitChild(c.name); kind {
		case stepPrefix:
			step, err := parseStep(node, c.Data)
			if err != nil {
				return err
			}
			r.noteResult(name, step.Result)
		case timerPrefix:
			timer, err := parseTimer(node, c.Data)
			if err != nil {
				return err
			}
			r.state.timers[name] = timer.until(c.Stat)
		case signalPrefix:
			signal, err := parseSignal(node, c.Data)
			if err != nil {
				return err
			}
			r.state.noteSignal(name, signal)
		default:
			return fmt.Errorf("%w: %q below %s is no step, timer or signal", ErrForeign, c.name, r.ledger.path)
		}
	}
	return nil
}
