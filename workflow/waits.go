package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Sleep returns nil when d has passed since the first call of the sleep with this name, and
// ErrWaiting before that: return ErrWaiting from the run's function. Then the run waits on the
// servers, without an executor, and its function is called again when the time is over. Times are
// by the ensemble's clock, and are rounded up to a second. In a function of Parallel, Sleep itself
// waits as long as another function works.
//
// A second Sleep of the same name in one call of the function returns framework.ErrInvalid.
func (r *Run) Sleep(ctx context.Context, name string, d time.Duration) error {
	if r == nil || r.stepRecorder == nil {
		return fmt.Errorf("%w: the run that sleeps in %q is nil", errOption, name)
	}
	err := checkName(name)
	if err == nil && (d < 0 || d > maxWait) {
		err = fmt.Errorf("%w: %v, it must be from 0 to %v", errOption, d, maxWait)
	}
	if err != nil {
		return failure.Wrap("sleep", r.ledger.path, err)
	}
	over, until, err := r.runTimer(ctx, numbered{name, 1}, d)
	for err == nil && !over {
		if err = r.wait(ctx, runWait{Until: until.UnixMilli()}); err == nil {
			over, err = r.isOver(ctx, until)
		}
	}
	return failure.Wrap("sleep", r.timerNode(numbered{name, 1}), err)
}

func (r *Run) timerNode(of numbered) string { return znode.Join(r.ledger.path, of.node(timerPrefix)) }

func (r *Run) signalNode(of numbered) string { return znode.Join(r.ledger.path, of.node(signalPrefix)) }

// runTimer begins a timer, or reads when the timer of this name is over that has begun before, and
// reports whether it is over.
func (r *Run) runTimer(ctx context.Context, name numbered, d time.Duration) (over bool, until time.Time, err error) {
	until, begun, err := r.state.useTimer(name)
	if err != nil {
		return false, until, err
	}
	if !begun {
		err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) (err error) {
			until, err = r.beginTimer(ctx, s, name, d)
			return err
		})
	}
	if err == nil {
		over, err = r.isOver(ctx, until)
	}
	return over, until, err
}

// isOver reports whether a time of the ensemble's clock is over.
func (r *Run) isOver(ctx context.Context, until time.Time) (over bool, err error) {
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		now, err := r.state.store.now(ctx, s)
		over = !now.Before(until)
		return err
	})
	return over, err
}

// beginTimer makes a timer's node, or finds the one of an earlier try.
func (r *Run) beginTimer(ctx context.Context, s *framework.Session, name numbered,
	d time.Duration) (until time.Time, err error) {
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

// Await returns the data of a signal that was sent to the run with Workflows.Signal. Before the
// signal has come, Await returns ErrWaiting: return that from the run's function. Then the run
// waits on the servers, without an executor. In a function of Parallel, Await itself waits as long
// as another function works. If timeout is not 0 and the signal has not come within this time since
// the first call, Await returns framework.ErrTimeout, then and each time the function is called
// again; Signal refuses a signal that comes later. framework.ErrTimeout is marked as Permanent: a
// function that returns it ends its run as failed. Workflows.Retry from the signal's name waits
// again.
//
// The k-th Await of a name in one call of the function is for the k-th signal of that name, if they
// are told apart by ids (WithSignalID); each has its own timeout. So await a name in the same order
// in each call, and not in several functions of Parallel. Names of signals and sleeps must differ.
// If the data does not decode into T, Await returns framework.ErrBadValue.
func Await[T any](ctx context.Context, run *Run, signal string, timeout time.Duration) (T, error) {
	var data, none T
	if run == nil || run.stepRecorder == nil {
		return none, fmt.Errorf("%w: the run that awaits signal %q is nil", errOption, signal)
	}
	if err := checkName(signal); err != nil { // before it is printed as part of a path
		return none, failure.Wrap("await", run.ledger.path, err)
	}
	raw, err := run.awaitSignal(ctx, signal, timeout)
	if err == nil {
		if err = json.Unmarshal(raw, &data); err != nil {
			err = fmt.Errorf("%w: %s does not decode into %T: %w", errResult, shortenResult(raw), data, err)
		}
	}
	if err != nil {
		return none, failure.Wrap("await", run.signalNode(numbered{signal, 1}), err)
	}
	return data, nil
}

func (r *Run) awaitSignal(ctx context.Context, name string, timeout time.Duration) (json.RawMessage, error) {
	if timeout < 0 || timeout > maxWait {
		return nil, fmt.Errorf("%w: timeout %v, it must be from 0 to %v", errOption, timeout, maxWait)
	}
	next, signal, come := r.state.nextSignal(name)
	w := runWait{Signal: name}
	if next.number > 1 {
		w.Number = next.number
	}
	var until time.Time
	var over bool
	var err error
	if !come && timeout > 0 {
		over, until, err = r.runTimer(ctx, next, timeout)
		w.Until = until.UnixMilli()
	}
	for err == nil && !come {
		if over {
			signal, err = r.timeOutSignal(ctx, next)
			break
		}
		if err = r.wait(ctx, w); err == nil {
			signal, come, err = r.findSignal(ctx, next)
		}
		if err == nil && timeout > 0 {
			over, err = r.isOver(ctx, until)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case signal.TimedOut:
		return nil, Permanent(fmt.Errorf("%w: no signal %q within %v", errTimeout, name, timeout))
	}
	return signal.Data, nil
}

// findSignal reads a signal that may have come.
func (r *Run) findSignal(ctx context.Context, name numbered) (signal signalRecord, come bool, err error) {
	node := r.signalNode(name)
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		data, _, err := s.Get(ctx, node)
		if err == nil {
			signal, err = parseSignal(node, data)
		}
		return err
	})
	if err == nil {
		r.state.addSignal(name, signal)
	}
	return signal, err == nil, ignoreNoNode(err)
}

// timeOutSignal makes the node which says that a signal has timed out. If the signal comes first,
// it returns the signal.
func (r *Run) timeOutSignal(ctx context.Context, name numbered) (signal signalRecord, err error) {
	node := r.signalNode(name)
	timedOut, err := encodeRecord(signalRecord{TimedOut: true})
	if err != nil {
		return signal, err
	}
	err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
		_, err := s.Multi(ctx, append(guardsOf(r.executor),
			framework.CreateOp(node, timedOut, framework.Persistent))...)
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
		r.state.addSignal(name, signal)
	}
	return signal, err
}

// childResult starts a child, or finds it, and returns its result.
func (r *Run) childResult(ctx context.Context, name, kind string, input any) (json.RawMessage, error) {
	data, err := encodeValue("input", input, MaxResult)
	if err != nil {
		return nil, err
	}
	id := r.ID() + "." + name
	for _, of := range []string{id, kind} {
		if err := checkName(of); err != nil {
			return nil, err
		}
	}
	store := r.state.store
	for isKnown := r.state.stored.ends.unended[id]; ; isKnown = false {
		if isKnown { // it has not ended
			if err := r.wait(ctx, runWait{Child: id}); err != nil {
				return nil, err
			}
			continue
		}
		record := runRecord{Workflow: kind, Input: data, Parent: &parentRun{r.ID(), r.UUID()},
			Trace: store.tel.traceContext(ctx)}.begin()
		var child storedRun
		err = r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) (err error) {
			child, err = store.findOrStartChild(ctx, s, id, record, guardsOf(r.executor))
			return err
		})
		if err == nil && child.State.IsFinished() {
			return child.Result, Permanent(child.outcome())
		}
		if err == nil {
			err = r.wait(ctx, runWait{Child: id})
		}
		if err != nil {
			return nil, err
		}
	}
}

// findOrStartChild reads a child, or starts it with record if it is missing. It reads without a
// sync: the executor has read its run behind one, and with an older state of the child the run does
// not wait. The child keeps its input: another release may have another one.
func (store *runStore) findOrStartChild(ctx context.Context, s *framework.Session, id string, record runRecord,
	guards []framework.Op) (child storedRun, err error) {
	child, err = store.readWithoutSync(ctx, s, id)
	if errors.Is(err, errNoRun) {
		if err = store.checkKnown(ctx, s, record.Workflow); err == nil {
			child, err = store.startOnce(ctx, s, id, record, startOps{guards: guards})
		}
	}
	switch {
	case err != nil:
		return child, err
	case child.Parent == nil || child.Parent.ID != record.Parent.ID:
		return child, fmt.Errorf("%w: run %q was not started by the same parent run", ErrIDInUse, id)
	case child.Parent.UUID == record.Parent.UUID && child.Workflow != record.Workflow:
		return child, fmt.Errorf("%w: run %q is a %s, not a %s", ErrIDInUse, id, child.Workflow, record.Workflow)
	case child.Parent.UUID == record.Parent.UUID || !child.State.IsFinished():
		// one of a former run with the parent's id keeps its name until it has finished
		return child, nil
	}
	if err := store.remove(ctx, s, child, guards...); err != nil {
		return child, err
	}
	return child, recipe.ErrAgain
}

// outcome is the error of a finished run that has no result.
func (r storedRun) outcome() error {
	switch r.State {
	case Failed:
		return fmt.Errorf("%w: %s: %s", ErrFailed, r.id, r.Error)
	case Cancelled:
		return fmt.Errorf("%w: %s: %s", ErrCancelled, r.id, r.Error)
	}
	return nil
}

// lookAfter is how long a function of Parallel waits before it watches the signal or the child that
// it waits for. Most often no other function works any more by then, and the run waits on the
// servers.
const lookAfter = time.Second

// errTimeOver is the cause with which a wait's context ends at the wait's time.
var errTimeOver = errors.New("the time of the wait is over")

// wait returns nil when what the run waits for may have come: look again. It returns ErrWaiting,
// and records the wait, when no other function of Parallel works any more, or if ctx is not from
// one.
func (r *Run) wait(ctx context.Context, w runWait) error {
	resume, ok := r.branches.wait(ctx)
	if resume != nil {
		defer resume()
	}
	if !ok {
		return r.state.addWait(w)
	}
	within, stop := whileExecuting(ctx, r.executor)
	defer stop()
	within, cancel := context.WithCancelCause(within)
	defer cancel(nil)
	defer context.AfterFunc(r.branches.idle, func() { cancel(ErrWaiting) })()
	err := r.waitInProcess(within, w)
	switch cause := context.Cause(within); {
	case errors.Is(cause, ErrWaiting):
		return r.state.addWait(w)
	case errors.Is(cause, ErrEnded):
		return cause
	case ctx.Err() != nil:
		return failure.Ended(ctx)
	}
	return err
}

// waitInProcess returns nil when the time of a wait is over, or its signal or the end of its child
// has come.
func (r *Run) waitInProcess(ctx context.Context, w runWait) error {
	if w.Until > 0 {
		var left time.Duration
		err := r.ledger.onSession(ctx, r.executor, func(ctx context.Context, s *framework.Session) error {
			now, err := r.state.store.now(ctx, s)
			left = time.UnixMilli(w.Until).Add(time.Millisecond).Sub(now)
			return err
		})
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeoutCause(ctx, left, errTimeOver)
		defer cancel()
		ctx = limited
	}
	err := recipe.Pause(ctx, lookAfter)
	switch {
	case err != nil:
	case w.Signal == "" && w.Child == "":
		<-ctx.Done()
	default:
		err = r.ledger.onSession(ctx, r.executor,
			func(ctx context.Context, s *framework.Session) error { return r.watchFor(ctx, s, w) })
	}
	if errors.Is(context.Cause(ctx), errTimeOver) {
		return nil
	}
	return err
}

// watchFor waits until a signal has come, or a child has ended or is gone.
func (r *Run) watchFor(ctx context.Context, s *framework.Session, w runWait) error {
	for {
		changed, err := r.watch(ctx, s, w)
		if err != nil || changed == nil {
			return err
		}
		if _, err := recipe.WaitForWatch(ctx, s, changed); err != nil {
			return err
		}
	}
}

// watch watches the node of a signal or a child. It returns no watch if the signal has come, or the
// child has ended or is gone.
func (r *Run) watch(ctx context.Context, s *framework.Session, w runWait) (*framework.Watch, error) {
	if w.Signal != "" {
		_, changed, err := s.WatchExists(ctx, r.signalNode(w.signal()))
		if err == nil {
			changed.Stop()
			return nil, nil
		}
		if errors.Is(err, framework.ErrNoNode) {
			return changed, nil
		}
		return nil, err
	}
	node := r.state.store.runNode(w.Child)
	data, _, changed, err := s.WatchData(ctx, node)
	if err != nil {
		return nil, ignoreNoNode(err)
	}
	child, err := parseRun(node, data)
	if err != nil || child.State.IsFinished() {
		changed.Stop()
		return nil, err
	}
	return changed, nil
}
