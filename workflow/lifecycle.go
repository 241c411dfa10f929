package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

// runStore is the runs on the servers. This file has all changes of a run's record, each of which is one transaction:
//
//	<path>/runs/<shard>/<run>                 persistent: the run, JSON {"v":1,"kind":"run","id","workflow","state","turn","input",…}
//	<path>/runs/<shard>/<run>/step-<name>     persistent: a finished step, as in a Ledger
//	<path>/runs/<shard>/<run>/timer-<name>    persistent: when a Sleep, or a wait with a limit, has begun, JSON {"v":1,"ms"}
//	<path>/runs/<shard>/<run>/signal-<name>   persistent: a signal, JSON {"v":1,"data"} or {"v":1,"timedOut":true}
//	<path>/queues/<kind>                      a queue.Queue in parallel order: items {"run","id","turn"}
//	<path>/ended/<minute>/<run>,<version>     persistent: finished runs, by the minute in which they ended
//	<path>/sweeper                            a locks.Mutex: who removes finished runs
//
// A run's life:
//
//	                    ┌── suspend: Sleep, Await, Child, a failed attempt ──▶ Waiting
//	start ──▶ Active ◀──┴── signal, the end of a child, the time (takeUp), retry ───┘ │
//	             │ finish                                                             │ cancel
//	             └──────────▶ Done, Failed, Cancelled ──▶ removed after the retention ◀┘
//	                             └── retry ──▶ Active
//
// The rule that keeps two executors from one run: a run is executed only with the delivery of the item whose turn is that of the record, and an Active run has
// exactly one such item. So a change that puts an item raises the turn in the same transaction, and older items are acknowledged unseen. A run that
// waits for a time has an item with a delay. Then the executor first writes Active (takeUp), and a signal that comes at the same moment either finds the run active
// or makes that write fail. A run that is cancelled while Active keeps its item, marked as held: who has the item lets go of it, and a retry before
// that goes on with the same item.
//
// What an executor writes carries the guard of its delivery and the version of the record that it has read. So the servers refuse it after
// each change of the record by someone else.
type runStore struct {
	client *framework.Client
	path   string
	tel    telemetry
	clock  recipe.EnsembleClock

	mu     sync.Mutex
	queues map[string]*queue.Queue[runItem]
	closed bool
}

func newRunStore(client *framework.Client, path string) *runStore {
	return &runStore{client: client, path: path, queues: map[string]*queue.Queue[runItem]{}}
}

// The places of nodes.
const (
	shards      = 256
	minuteForm  = "20060102T1504"
	clockWithin = time.Hour // how old the ensemble's time may be before it is asked again
)

func (st *runStore) shardDir(n int) string { return fmt.Sprintf("%s/runs/%02x", st.path, n) }

func (st *runStore) runNode(run string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	return znode.Join(st.shardDir(int(h.Sum32()%shards)), run)
}

func (st *runStore) queuePath(kind string) string { return st.path + "/queues/" + kind }

func (st *runStore) endedDir() string { return st.path + "/ended" }

// queueOf returns the queue of a kind's runs.
func (st *runStore) queueOf(kind string) (*queue.Queue[runItem], error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, ErrClosed
	}
	q := st.queues[kind]
	if q == nil {
		q = queue.New(st.client, st.queuePath(kind), queue.JSON[runItem](), queue.WithOrder(queue.Parallel), queue.WithMaxInFlight(MaxWorkers))
		st.queues[kind] = q
	}
	return q, nil
}

// close closes the queues.
func (st *runStore) close(ctx context.Context) error {
	st.mu.Lock()
	st.closed = true
	queues := st.queues
	st.mu.Unlock()
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.Close(ctx))
	}
	return errors.Join(errs...)
}

// now is the ensemble's time. It writes at most once an hour.
func (st *runStore) now(ctx context.Context, s *framework.Session) (time.Time, error) {
	if !st.clock.Known() || st.clock.Age() > clockWithin {
		if _, err := st.clock.Ask(ctx, s, st.endedDir()); err != nil {
			return time.Time{}, err
		}
	}
	return st.clock.Now(), nil
}

// storedRun is a run as it was read.
type storedRun struct {
	name string
	node string
	runRecord
	stat framework.Stat
}

// read reads a run behind a sync. A missing one is ErrNoRun.
func (st *runStore) read(ctx context.Context, s *framework.Session, run string) (r storedRun, err error) {
	r.name, r.node = run, st.runNode(run)
	if err := s.Sync(ctx, r.node); err != nil {
		return r, err
	}
	data, stat, err := s.Get(ctx, r.node)
	if errors.Is(err, framework.ErrNoNode) {
		return r, fmt.Errorf("%w: %q", ErrNoRun, run)
	}
	if err != nil {
		return r, err
	}
	r.stat = stat
	r.runRecord, err = parseRun(r.node, data)
	return r, err
}

// write is the operation that replaces the record that was read.
func (r storedRun) write(next runRecord) (framework.Op, error) {
	data, err := next.encode()
	return framework.SetOp(r.node, data, r.stat.Version), err
}

// unchanged is the operation that refuses a transaction if the record was replaced since it was read.
func (r storedRun) unchanged() framework.Op { return framework.CheckOp(r.node, r.stat.Version) }

// transition is one change of runs.
type transition struct {
	ops      []framework.Op
	kind     string   // of item
	item     *runItem // to be put into the queue of its kind, or nil
	delay    time.Duration
	delivery *queue.Delivery[runItem] // with which an executor has the run, to be acknowledged; or nil
}

// commit writes a transition in one transaction. With a delivery the servers refuse it once that has ended. ErrAgain says that the transition was refused, since
// something has changed, or that the outcome is unknown: read again.
func (st *runStore) commit(ctx context.Context, s *framework.Session, t transition) error {
	for {
		err := st.commitOnce(ctx, s, t)
		var refused *framework.TxError
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.As(err, &refused) && refused.Op == "create" && errors.Is(refused.Err, framework.ErrNoNode): // the first in its directory
			dir, _ := znode.Split(refused.Path)
			if err := s.MakeDirs(ctx, dir); err != nil {
				return err
			}
		case errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth), errors.Is(err, queue.ErrUnknown), errors.Is(err, framework.ErrOutcomeUnknown):
			return fmt.Errorf("%w: %w", recipe.ErrAgain, err)
		default:
			return err
		}
	}
}

func (st *runStore) commitOnce(ctx context.Context, s *framework.Session, t transition) error {
	switch {
	case t.item != nil:
		q, err := st.queueOf(t.kind)
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
			_ = t.delivery.Ack(ctx) // if this fails, the item comes again, with a turn that is over
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

// untilSettled returns a context that ends with a delivery's, except when that ends because the delivery was settled: then the answer is on its way to the caller.
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

// change reads a run and commits what step makes of it, until that is done. A transition without operations is nothing to do.
func (st *runStore) change(ctx context.Context, run string, step func(s *framework.Session, r storedRun) (transition, error)) error {
	return recipe.OnSession(ctx, st.client, func(s *framework.Session) error {
		r, err := st.read(ctx, s, run)
		if err != nil {
			return err
		}
		t, err := step(s, r)
		if err != nil || len(t.ops) == 0 {
			return err
		}
		return st.commit(ctx, s, t)
	}, failure.IsTransient)
}

// start makes a run, unless it exists with the same kind, input and parent. It returns what is stored.
func (st *runStore) start(ctx context.Context, run string, r runRecord) (stored storedRun, err error) {
	r.Kind, r.ID, r.State, r.Turn = runKind, uuid.NewString(), Active, 1
	data, err := r.encode()
	if err != nil {
		return stored, err
	}
	node := st.runNode(run)
	err = recipe.OnSession(ctx, st.client, func(s *framework.Session) error {
		err := st.commit(ctx, s, transition{kind: r.Workflow, item: r.item(run), ops: []framework.Op{framework.CreateOp(node, data, framework.Persistent)}})
		if err == nil {
			stored = storedRun{name: run, node: node, runRecord: r} // in its first version
			return nil
		}
		if !errors.Is(err, recipe.ErrAgain) {
			return err
		}
		stored, err = st.read(ctx, s, run)
		if errors.Is(err, ErrNoRun) {
			return recipe.ErrAgain
		}
		return err
	}, failure.IsTransient)
	switch {
	case err != nil || stored.ID == r.ID:
		return stored, err
	case stored.Workflow != r.Workflow || !bytes.Equal(stored.Input, r.Input):
		return stored, fmt.Errorf("%w: run %q is a %s with input %s, not a %s with input %s",
			ErrIDInUse, run, stored.Workflow, shortenResult(stored.Input), r.Workflow, shortenResult(r.Input))
	case (stored.Parent == nil) != (r.Parent == nil) || r.Parent != nil && *stored.Parent != *r.Parent:
		return stored, fmt.Errorf("%w: run %q was not started by the same parent run", ErrIDInUse, run)
	}
	return stored, nil
}

// takeUp writes that a run is active which has waited for the time that is over now, or was given back after a failure.
func (st *runStore) takeUp(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun) error {
	next := r.runRecord
	next.State, next.Waits = Active, nil
	write, err := r.write(next)
	if err == nil {
		err = st.commit(ctx, s, transition{ops: []framework.Op{d.Guard(), write}})
	}
	return err
}

// letGo acknowledges the item of a run that was cancelled.
func (st *runStore) letGo(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun) error {
	next := r.runRecord
	next.Held = false
	write, err := r.write(next)
	if err == nil {
		err = st.commit(ctx, s, transition{ops: []framework.Op{write}, delivery: d})
	}
	return err
}

// suspend lets an active run wait. checks refuse the transaction if what it waits for has come meanwhile.
func (st *runStore) suspend(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun, next runRecord, checks []framework.Op) error {
	next.State = Waiting
	t := transition{delivery: d}
	until := int64(0)
	for _, w := range next.Waits {
		if w.Until > 0 && (until == 0 || w.Until < until) {
			until = w.Until
		}
	}
	if until > 0 {
		now, err := st.now(ctx, s)
		if err != nil {
			return err
		}
		next.Turn++
		t.kind, t.item, t.delay = r.Workflow, next.item(r.name), max(time.Millisecond, time.UnixMilli(until).Sub(now))
	}
	write, err := r.write(next)
	if err != nil {
		return err
	}
	t.ops = append([]framework.Op{write}, checks...)
	return st.commit(ctx, s, t)
}

// finish ends a run. If its parent waits for it, the parent becomes active in the same transaction.
func (st *runStore) finish(ctx context.Context, s *framework.Session, d *queue.Delivery[runItem], r storedRun, next runRecord) error {
	next.Waits = nil
	now, err := st.now(ctx, s)
	if err != nil {
		return err
	}
	write, err := r.write(next)
	if err != nil {
		return err
	}
	ended := fmt.Sprintf("%s/%s/%s,%d", st.endedDir(), now.UTC().Format(minuteForm), r.name, r.stat.Version) // a run that is retried ends again
	t := transition{delivery: d, ops: []framework.Op{write, framework.CreateOp(ended, nil, framework.Persistent)}}
	if r.Parent != nil {
		parent, err := st.read(ctx, s, r.Parent.Run)
		switch {
		case errors.Is(err, ErrNoRun) || err == nil && parent.ID != r.Parent.ID:
		case err != nil:
			return err
		case parent.waitsFor(func(w runWait) bool { return w.Child == r.name }):
			awake := parent.activate()
			wake, err := parent.write(awake)
			if err != nil {
				return err
			}
			t.kind, t.item, t.ops = parent.Workflow, awake.item(parent.name), append(t.ops, wake)
		default:
			t.ops = append(t.ops, parent.unchanged())
		}
	}
	return st.commit(ctx, s, t)
}

// signal makes a signal's node. If the run waits for it, it becomes active.
func (st *runStore) signal(ctx context.Context, run, name string, data json.RawMessage) error {
	record, err := encodeRecord(signalRecord{Data: data})
	if err != nil {
		return err
	}
	node := znode.Join(st.runNode(run), signalPrefix+name)
	return st.change(ctx, run, func(s *framework.Session, r storedRun) (t transition, err error) {
		former, _, err := s.Get(ctx, node)
		switch {
		case err == nil:
			return t, checkSameSignal(node, name, former, data)
		case !errors.Is(err, framework.ErrNoNode):
			return t, err
		case r.State.IsFinished():
			return t, fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		case r.stat.NumChildren >= maxChildren:
			return t, fmt.Errorf("%w: the run has %d steps, timers and signals and may have no more", framework.ErrTooLarge, r.stat.NumChildren)
		}
		create := framework.CreateOp(node, record, framework.Persistent)
		if !r.waitsFor(func(w runWait) bool { return w.Signal == name }) {
			t.ops = []framework.Op{r.unchanged(), create}
			return t, nil
		}
		next := r.activate()
		wake, err := r.write(next)
		return transition{ops: []framework.Op{wake, create}, kind: r.Workflow, item: next.item(run)}, err
	})
}

// checkSameSignal refuses a signal that the run has had with other data.
func checkSameSignal(node, name string, former []byte, data json.RawMessage) error {
	record, err := parseSignal(node, former)
	switch {
	case err != nil:
		return err
	case record.TimedOut:
		return fmt.Errorf("%w: the run's wait for %q has timed out", ErrSignalled, name)
	case !bytes.Equal(record.Data, data):
		return fmt.Errorf("%w: %q has data %s, not %s", ErrSignalled, name, shortenResult(record.Data), shortenResult(data))
	}
	return nil
}

// cancel ends a run that has not finished.
func (st *runStore) cancel(ctx context.Context, run, reason string) error {
	return recipe.OnSession(ctx, st.client, func(s *framework.Session) error {
		r, err := st.read(ctx, s, run)
		if err != nil {
			return err
		}
		next := r.runRecord
		next.State, next.Error = Cancelled, shortenReason(reason)
		switch {
		case r.State == Cancelled:
			return nil
		case r.State.IsFinished():
			return fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		case r.State == Active:
			next.Held = true
		default:
			next.Turn++ // the item of a wait with a time is not this turn's any more
		}
		return st.finish(ctx, s, nil, r, next)
	}, failure.IsTransient)
}

// retry makes a run active again that has finished, or waits after a failure. It deletes the records of the step from and of all that were recorded after it.
func (st *runStore) retry(ctx context.Context, run, from string) error {
	sent := map[int64]bool{} // the turns for which the outcome may be unknown
	return st.change(ctx, run, func(s *framework.Session, r storedRun) (t transition, err error) {
		afterFailure := r.waitsFor(func(w runWait) bool { return w.Retry })
		switch {
		case r.State == Active && sent[r.Turn]:
			return t, nil
		case !r.State.IsFinished() && !afterFailure:
			return t, fmt.Errorf("%w: it is %s", ErrUnfinished, r.State)
		case r.State == Done && from == "":
			return t, fmt.Errorf("%w: it is done: name the step to retry from", ErrFinished)
		}
		next := r.activate()
		next.Failures, next.Error, next.Result, next.Held = 0, "", nil, false
		if r.Held {
			next.Turn = r.Turn
		} else {
			t.kind, t.item = r.Workflow, next.item(run)
		}
		write, err := r.write(next)
		if err != nil {
			return t, err
		}
		nodes, err := st.nodesFrom(ctx, s, r, from)
		t.ops = []framework.Op{write}
		for _, node := range nodes {
			t.ops = append(t.ops, framework.DeleteOp(node, framework.AnyVersion))
		}
		sent[next.Turn] = true
		return t, err
	})
}

// nodesFrom are the node of a step and those of steps and timers that were made later. Signals stay.
func (st *runStore) nodesFrom(ctx context.Context, s *framework.Session, r storedRun, from string) ([]string, error) {
	if from == "" {
		return nil, nil
	}
	children, err := st.children(ctx, s, r.node)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(children, func(c childNode) bool { return c.name == stepPrefix+from })
	if first < 0 {
		var steps []string
		for _, c := range children {
			if name, ok := strings.CutPrefix(c.name, stepPrefix); ok {
				steps = append(steps, name)
			}
		}
		return nil, fmt.Errorf("%w: the run has no record of step %q; it has %q", ErrOption, from, steps)
	}
	var nodes []string
	for _, c := range children[first:] {
		if !strings.HasPrefix(c.name, signalPrefix) {
			nodes = append(nodes, znode.Join(r.node, c.name))
		}
	}
	return nodes, nil
}

// childNode is a step, a timer or a signal of a run.
type childNode struct {
	name string
	framework.Node
}

// children are the nodes below a run, in the order in which they were made.
func (st *runStore) children(ctx context.Context, s *framework.Session, node string) ([]childNode, error) {
	names, _, err := s.Children(ctx, node)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.Join(node, name)
	}
	all, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var children []childNode
	for i, n := range all {
		if n.Err == nil {
			children = append(children, childNode{names[i], n})
		} else if !errors.Is(n.Err, framework.ErrNoNode) {
			return nil, n.Err
		}
	}
	slices.SortFunc(children, func(a, b childNode) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
	return children, nil
}

// shortenReason returns the beginning of a text, for a record.
func shortenReason(text string) string {
	const most = 2000
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
