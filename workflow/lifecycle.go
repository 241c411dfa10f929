package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

// This file has the changes of a run's record; start.go has its start. Each one is one transaction.
//
// A run's life:
//
//	                    ┌── suspend: Sleep, Await, Child, a failed attempt ──▶ Waiting
//	start ──▶ Active ◀──┴── signal, the end of a child, the time, retry ────────────┘ │
//	             │ finish                                                             │ cancel
//	             └──────────▶ Done, Failed, Cancelled ──▶ removed after the retention ◀┘
//	                             └── retry ──▶ Active
//
// The rule that keeps two executors from one run: a run is executed only with the delivery of the
// item that has the record's item number, and an Active run has exactly one such item. So a change
// that puts an item raises the number in the same transaction, and older items are acknowledged
// unseen. A run that
// waits for a time has an item with a delay. Then the executor first writes Active
// (resumeAfterTime), and a signal that comes at the same moment either finds the run active or
// makes that write fail. A run that is cancelled while Active keeps its item, marked as held: the
// executor with the item acknowledges it, and a retry before that goes on with the same item. If an
// operator has purged the queue, runs without their items stand still; requeue puts new ones.
//
// What an executor writes carries the guard of its delivery and the version of the record that it
// has read. So the servers refuse it after each change of the record by someone else.

// transition is one change of runs.
type transition struct {
	ops       []framework.Op
	callerOps int      // how many of ops, the last ones, are those of WithOps
	kind      string   // of item
	item      *runItem // to be put into the queue of its kind, or nil
	delay     time.Duration
	delivery  *queue.Delivery[runItem] // with which an executor has the run, to be acknowledged; or nil
}

// commit writes a transition in one transaction. With a delivery the servers refuse it once that
// has ended. ErrAgain says that the transition was refused, since another client has changed
// something, or that the outcome is unknown: read again. framework.ErrRefused says that the servers
// refuse one of the caller's own operations.
func (store *runStore) commit(ctx context.Context, s *framework.Session, t transition) error {
	for {
		err := store.commitOnce(ctx, s, t)
		var refused *framework.TxError
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case t.callerOps > 0 && errors.Is(err, framework.ErrRefused) && errors.As(err, &refused) &&
			refused.Index >= len(t.ops)-t.callerOps:
			own := *refused
			own.Index -= len(t.ops) - t.callerOps
			return fmt.Errorf("%w: %w", errRefused, &own)
		case errors.As(err, &refused) && refused.Op == "create" && errors.Is(refused.Err, framework.ErrNoNode):
			// the first in its directory
			dir, _ := znode.Split(refused.Path)
			if err := s.MakeDirs(ctx, dir); err != nil {
				return err
			}
		case errors.As(err, &refused) && recipe.IsConflict(err), errors.Is(err, framework.ErrOutcomeUnknown):
			return fmt.Errorf("%w: %w", recipe.ErrAgain, err)
		default:
			return err
		}
	}
}

func (store *runStore) commitOnce(ctx context.Context, s *framework.Session, t transition) error {
	switch {
	case t.item != nil:
		q, err := store.queueOf(t.kind)
		if err != nil {
			return err
		}
		ops := t.ops
		if t.delivery != nil {
			ops = append([]framework.Op{t.delivery.Guard()}, ops...)
		}
		if err := q.Put(ctx, *t.item, queue.WithDelay(t.delay), queue.WithOps(ops...)); err != nil {
			return err
		}
		if t.delivery != nil {
			_ = t.delivery.Ack(ctx) // if this fails, the item comes again, and is an older one then
		}
		return nil
	case t.delivery != nil:
		within, stop := untilSettled(ctx)
		defer stop()
		return t.delivery.AckWith(within, t.ops...)
	}
	_, err := s.Multi(ctx, t.ops...)
	return err
}

// untilSettled returns a context that ends with a delivery's, except when that ends because the
// delivery was settled: then the answer is on its way to the caller.
func untilSettled(ctx context.Context) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), queue.ErrSettled) {
			cancel(context.Cause(ctx))
		}
	})
	return within, func() {
		unwatch()
		cancel(nil)
	}
}

// change reads a run and calls attempt with it, again and again until attempt returns no error or
// one that a repetition does not help. requestID is the UUID that attempt adds to the record's
// requests: after a lost answer it shows whether the write was applied. It is "" if attempt sees by
// itself what an earlier attempt has done.
func (store *runStore) change(ctx context.Context, id, requestID string,
	attempt func(s *framework.Session, r storedRun) error) error {
	var before *storedRun // as it was read before the write whose outcome is unknown, or nil
	return recipe.OnSession(ctx, store.client, func(s *framework.Session) error {
		r, err := store.read(ctx, s, id)
		switch {
		case errors.Is(err, errNoRun) && before != nil:
			return fmt.Errorf("%w: the run was removed before its record told what was done: %w",
				framework.ErrOutcomeUnknown, err)
		case err != nil:
			return err
		case before != nil && r.UUID != before.UUID:
			return fmt.Errorf("%w: the run was removed, and its id is used again, before its record told what was done",
				framework.ErrOutcomeUnknown)
		case slices.Contains(r.Requests, requestID):
			return nil
		case before != nil && requestID != "" && !r.hasRequestsSince(before.runRecord):
			return fmt.Errorf("%w: others have cancelled or retried the run so often since that its record does not "+
				"tell what was done", framework.ErrOutcomeUnknown)
		}
		err = attempt(s, r)
		var refused *framework.TxError
		if err != nil && !errors.As(err, &refused) {
			before = &r
		}
		return err
	}, failure.IsTransient)
}

// resumeAfterTime makes a waiting run active: the time is over for which it waited, or the pause
// after a failed attempt.
func (store *runStore) resumeAfterTime(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem],
	r storedRun) error {
	next := r.resume()
	write, err := r.write(next)
	if err == nil {
		err = store.commit(ctx, s, transition{ops: []framework.Op{d.Guard(), write}})
	}
	return err
}

// ackHeldItem acknowledges the item that a run has kept since it was cancelled while Active.
func (store *runStore) ackHeldItem(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem],
	r storedRun) error {
	next := r.runRecord
	next.Held = false
	write, err := r.write(next)
	if err == nil {
		err = store.commit(ctx, s, transition{ops: []framework.Op{write}, delivery: d})
	}
	return err
}

// renewItem puts another item in the place of one that handle has given back, since the run could
// not be executed then. The lost executors of the new item are counted from 0.
func (store *runStore) renewItem(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem],
	r storedRun) error {
	next := r.runRecord
	next.ItemNumber++
	write, err := r.write(next)
	if err == nil {
		err = store.commit(ctx, s, transition{ops: []framework.Op{write}, kind: r.Workflow, item: next.item(r.id),
			delivery: d})
	}
	return err
}

// errChanged says that the run must be read again: its record was changed by someone else, or what
// it wants to wait for has come. It is the cause with which the context of a run's function ends.
var errChanged = errors.New("the run's record was changed")

// suspend lets an active run wait. It returns errChanged if something that it waits for has come.
func (store *runStore) suspend(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun,
	next runRecord) error {
	next.State, next.Waited = Waiting, nil
	ends, err := store.countEndsOfChildren(ctx, s, r, &next)
	if err != nil {
		return err
	}
	checks, err := store.awaitedChecks(ctx, s, r, next.Waits)
	if err != nil {
		return err
	}
	checks = append(checks, ends...)
	t := transition{delivery: d}
	delay, timed, err := store.delayOf(ctx, s, next.Waits)
	if err != nil {
		return err
	}
	if timed {
		next.ItemNumber++
		t.kind, t.item, t.delay = r.Workflow, next.item(r.id), delay
	}
	write, err := r.write(next)
	if err != nil {
		return err
	}
	t.ops = append([]framework.Op{write}, checks...)
	return store.commit(ctx, s, t)
}

// delayOf returns the delay of the item that ends a wait at its earliest time. timed is false if
// the wait has no time: then it has no item.
func (store *runStore) delayOf(ctx context.Context, s *framework.Session, waits []runWait) (delay time.Duration,
	timed bool, err error) {
	until := int64(0)
	for _, w := range waits {
		if w.Until > 0 && (until == 0 || w.Until < until) {
			until = w.Until
		}
	}
	if until == 0 {
		return 0, false, nil
	}
	now, err := store.now(ctx, s)
	return max(time.Millisecond, time.UnixMilli(until).Sub(now)), true, err
}

// countEndsOfChildren writes into the record of a run that is to wait for children how many ends of
// children came while it did not wait. It returns the operations which refuse a transaction if the
// node that counts them was changed since the executor has read it, or errChanged if it has changed
// already: then maybe a child has ended that was not read.
func (store *runStore) countEndsOfChildren(ctx context.Context, s *framework.Session, r storedRun,
	next *runRecord) ([]framework.Op, error) {
	isAwaited := func(w runWait) bool { return w.Child != "" }
	isUnread := func(w runWait) bool { return r.ends.unended[w.Child] }
	node := znode.Join(r.node, endsName)
	switch {
	case !slices.ContainsFunc(next.Waits, isAwaited):
		return nil, nil
	case r.ends.version == 0:
		next.Ends = 1
		return []framework.Op{framework.CreateOp(node, nil, framework.Persistent)}, nil
	}
	next.Ends = r.ends.version // if others have ended since, the next executor reads all
	if !slices.ContainsFunc(next.Waits, isUnread) {
		return nil, nil
	}
	stat, err := s.Exists(ctx, node)
	if errors.Is(err, framework.ErrNoNode) || err == nil && stat.Version+1 != r.ends.version {
		return nil, errChanged
	}
	return []framework.Op{framework.CheckOp(node, stat.Version)}, err
}

// awaitedChecks returns the operations which refuse a transaction if something that a run waits for
// has come meanwhile, or errChanged if it has come already. An older state, which it may read, is
// refused.
func (store *runStore) awaitedChecks(ctx context.Context, s *framework.Session, r storedRun,
	waits []runWait) (checks []framework.Op, err error) {
	var nodes []string
	for _, w := range waits {
		switch {
		case w.Signal != "":
			nodes = append(nodes, znode.Join(r.node, w.signal().node(signalPrefix)))
		case w.Child != "" && !r.ends.unended[w.Child]: // see countEndsOfChildren
			nodes = append(nodes, store.runNode(w.Child))
		}
	}
	found, err := s.GetAll(ctx, nodes...)
	if err != nil {
		return nil, err
	}
	for i, n := range found {
		isSignal := strings.HasPrefix(nodes[i], r.node+"/")
		switch {
		case n.Err != nil && !errors.Is(n.Err, framework.ErrNoNode):
			return nil, n.Err
		case isSignal == (n.Err == nil): // the signal has come, or the child is gone
			return nil, errChanged
		case isSignal: // no operation says that a node is missing, but a create and a delete do
			checks = append(checks, framework.CreateOp(nodes[i], nil, framework.Persistent),
				framework.DeleteOp(nodes[i], framework.AnyVersion))
		default:
			child, err := parseRun(nodes[i], n.Data)
			if errors.Is(err, errNoRun) { // only its kept id is left
				return nil, errChanged
			}
			if err != nil {
				return nil, err
			}
			if child.State.IsFinished() {
				return nil, errChanged
			}
			checks = append(checks, framework.CheckOp(nodes[i], n.Stat.Version))
		}
	}
	return checks, nil
}

// finish ends a run. If its parent waits for it, the parent becomes active in the same transaction.
func (store *runStore) finish(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun,
	next runRecord) error {
	next.Waits, next.Waited = nil, nil
	now, err := store.now(ctx, s)
	if err != nil {
		return err
	}
	write, err := r.write(next)
	if err != nil {
		return err
	}
	dir := store.endedDir()
	if next.State == Failed {
		dir = store.failedDir()
	}
	// a run that is retried ends again
	ended := fmt.Sprintf("%s/%s/%s,%d", dir, now.UTC().Format(minuteForm), r.id, r.stat.Version)
	t := transition{delivery: d, ops: []framework.Op{write, framework.CreateOp(ended, nil, framework.Persistent)}}
	if r.Parent != nil {
		parent, err := store.read(ctx, s, r.Parent.ID)
		switch {
		case errors.Is(err, errNoRun): // another run with the parent's id may wait for the end of this one
		case err != nil:
			return err
		case parent.waitsFor(func(w runWait) bool { return w.Child == r.id }):
			awake := parent.activate()
			awake.Waited = slices.DeleteFunc(awake.Waited, func(id string) bool { return id == r.id })
			wake, err := parent.write(awake)
			if err != nil {
				return err
			}
			t.kind, t.item, t.ops = parent.Workflow, awake.item(parent.id), append(t.ops, wake)
		default:
			t.ops = append(t.ops, parent.unchanged())
			if parent.Ends > 0 && !parent.State.IsFinished() { // what its executor knows of its children is over
				t.ops = append(t.ops, framework.SetOp(znode.Join(parent.node, endsName), nil, framework.AnyVersion))
			}
		}
	}
	return store.commit(ctx, s, t)
}

// cancel ends a run that has not finished.
func (store *runStore) cancel(ctx context.Context, id, reason string) error {
	requestID := uuid.NewString()
	return store.change(ctx, id, requestID, func(s *framework.Session, r storedRun) error {
		next := r.withRequest(requestID)
		next.State, next.Error = Cancelled, stored.Shorten(reason, maxReason)
		switch {
		case r.State == Cancelled:
			return nil
		case r.State.IsFinished():
			return fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		case r.State == Active:
			next.Held = true
		default:
			next.ItemNumber++ // the item of a wait with a time is an older one then
		}
		return store.finish(ctx, s, nil, r, next)
	})
}

// requeue puts another item of an unfinished run into its queue, and makes the former item void.
func (store *runStore) requeue(ctx context.Context, id string) error {
	requestID := uuid.NewString()
	return store.change(ctx, id, requestID, func(s *framework.Session, r storedRun) error {
		if r.State.IsFinished() {
			return fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		}
		delay, timed, err := store.delayOf(ctx, s, r.Waits)
		if err != nil || r.State == Waiting && !timed { // a signal or the end of a child puts its item
			return err
		}
		next := r.withRequest(requestID)
		next.ItemNumber++
		write, err := r.write(next)
		if err != nil {
			return err
		}
		return store.commit(ctx, s, transition{ops: []framework.Op{write}, kind: r.Workflow, item: next.item(id),
			delay: delay})
	})
}

// RetryOption changes how a run is retried.
type RetryOption func(*retryOptions) error

type retryOptions struct{ input json.RawMessage } // or nil

// WithRetryInput gives the run another input, stored as JSON of at most MaxResult bytes: its
// function is called with that from then on, and Start with the former input returns ErrIDInUse.
// The input must decode into the type of the run's kind, else the next attempt fails.
func WithRetryInput(input any) RetryOption {
	return func(o *retryOptions) (err error) {
		o.input, err = encodeValue("input", input, MaxResult)
		return err
	}
}

// retry makes a run active again that has finished, or waits after a failure. It deletes the
// records from the step or wait on that has the name from.
func (store *runStore) retry(ctx context.Context, id, from string, how retryOptions) error {
	requestID := uuid.NewString()
	return store.change(ctx, id, requestID, func(s *framework.Session, r storedRun) error {
		afterFailure := r.waitsFor(func(w runWait) bool { return w.Retry })
		switch {
		case !r.State.IsFinished() && !afterFailure:
			return fmt.Errorf("%w: it is %s", ErrNotFinished, r.State)
		case r.State == Done && from == "":
			return fmt.Errorf("%w: it is done: name the step to retry from", ErrFinished)
		}
		next := r.withRequest(requestID).activate()
		next.Failures, next.Error, next.Result, next.Held = 0, "", nil, false
		if how.input != nil {
			next.Input = how.input
		}
		var t transition
		if r.Held {
			next.ItemNumber = r.ItemNumber
		} else {
			t.kind, t.item = r.Workflow, next.item(id)
		}
		write, err := r.write(next)
		if err != nil {
			return err
		}
		nodes, err := store.nodesFrom(ctx, s, r, from)
		if err != nil {
			return err
		}
		t.ops = []framework.Op{write}
		for _, node := range nodes {
			t.ops = append(t.ops, framework.DeleteOp(node, framework.AnyVersion))
		}
		err = store.commit(ctx, s, t)
		if errors.Is(err, framework.ErrTooLarge) && len(nodes) > 0 {
			err = fmt.Errorf("%d records from %q on do not go into one transaction, retry from a later one: %w",
				len(nodes), from, err)
		}
		return err
	})
}

// nodesFrom returns the nodes of a step or a wait, and those of the steps, sleeps and expired waits
// that were recorded later. Signals that have come are not among them.
func (store *runStore) nodesFrom(ctx context.Context, s *framework.Session, r storedRun,
	from string) ([]string, error) {
	if from == "" {
		return nil, nil
	}
	children, err := store.children(ctx, s, r.node)
	if err != nil {
		return nil, err
	}
	var nodes, names []string
	found := false
	for _, c := range children {
		kind, name := splitChild(c.name)
		node := znode.Join(r.node, c.name)
		if kind == endsName {
			continue
		}
		if kind == signalPrefix {
			signal, err := parseSignal(node, c.Data)
			if err != nil {
				return nil, err
			}
			if !signal.TimedOut {
				continue
			}
		}
		if found = found || name == from; found {
			nodes = append(nodes, node)
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: the run has no record of %q; it has %q", errOption, from, names)
	}
	return nodes, nil
}
