package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Report describes a run.
type Report struct {
	// Path is the path of the Workflows that have the run. In JSON the id follows it, as the
	// command line takes it.
	Path string `json:"-"`
	// ID is the id that Start was given, as Run.ID. Kind is the run's kind.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// UUID is the run's random id. The key of a step's effects is the UUID, a hyphen and the step's
	// name.
	UUID string `json:"uuid"`
	// State is where the run is in its life.
	State State `json:"state"`
	// Input and Result are JSON. Only a run that is Done has a result.
	Input  json.RawMessage `json:"input"`
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the error of the latest failed attempt, or the reason why the run Failed or was
	// Cancelled.
	Error string `json:"error,omitempty"`
	// Failures is how many attempts have failed since the run last waited.
	Failures int `json:"failures,omitempty"`
	// Waits describes each signal, child or time that a Waiting run waits for.
	Waits []string `json:"waits,omitempty"`
	// Parent is the id of the run that has started this one, or "".
	Parent string `json:"parent,omitempty"`
	// Taken is the member that executes an Active run, or will execute it as soon as one of its
	// workers is free. It is nil while no member has the run. A dead member is shown until the
	// servers have ended its session: without a watchdog, for about its session timeout.
	Taken *Taken `json:"taken,omitempty"`
	// TakenErr is the error of reading the claims of the run's kind, or nil. After an error Taken
	// is nil, although a member may have the run.
	TakenErr error `json:"-"`
	// Started and Changed are the times of the start and of the latest change of the record, by
	// the clock of the ensemble's leader. Of a run that has ended, Changed is the time of the
	// end. Steps do not change the record.
	Started time.Time `json:"started"`
	Changed time.Time `json:"changed"`
	// Steps are the steps that have records, in the order in which these were made. Only Inspect
	// reads steps. The servers do not know which step is under way: it is one that follows the last
	// of these.
	Steps []StepRecord `json:"steps,omitempty"`
	// Signals are the names of the signals that have come, a name once for each of its signals.
	// Only Inspect reads signals.
	Signals []string `json:"signals,omitempty"`

	item runItem // the run's latest one
}

// MarshalJSON adds "input_base64" and "result_base64" for what is not UTF-8, and the graphs of
// GraphsIn.
func (r Report) MarshalJSON() ([]byte, error) {
	type fields Report
	r.Started, r.Changed = reportjson.Time(r.Started), reportjson.Time(r.Changed)
	return json.Marshal(struct {
		Path string `json:"path"`
		fields
		InputBase64  []byte          `json:"input_base64,omitempty"`
		ResultBase64 []byte          `json:"result_base64,omitempty"`
		Graphs       []GraphProgress `json:"graphs,omitempty"`
	}{znode.Join(r.Path, r.ID), fields(r), reportjson.ExactBytes(string(r.Input)),
		reportjson.ExactBytes(string(r.Result)), GraphsIn(r.Steps)})
}

// Taken is a member that has a run.
type Taken struct {
	// Member is the identity of the member's client (framework.Config.Identity, by default the
	// host's name and the process's number), cut off after 128 bytes.
	Member string `json:"member"`
	// Session is the member's session.
	Session framework.SessionID `json:"session"`
	// Since is when the member took the run, by the ensemble's clock.
	Since time.Time `json:"since,omitzero"`
}

// MarshalJSON leaves a time out that JSON cannot hold.
func (t Taken) MarshalJSON() ([]byte, error) {
	type fields Taken
	t.Since = reportjson.Time(t.Since)
	return json.Marshal(fields(t))
}

// takenRuns are the members that have runs, by kind.
type takenRuns map[string]takenOfKind

type takenOfKind struct {
	members map[runItem]*Taken
	err     error
}

// setTaken sets Taken of active runs, from the claims of their queues, or TakenErr. It reads the
// claims of a kind that is not known.
func (w *Workflows) setTaken(ctx context.Context, runs []Report, known takenRuns) {
	for i := range runs {
		if runs[i].State != Active {
			continue
		}
		of, ok := known[runs[i].Kind]
		if !ok {
			of.members, of.err = w.readTaken(ctx, runs[i].Kind)
			known[runs[i].Kind] = of
		}
		runs[i].Taken, runs[i].TakenErr = of.members[runs[i].item], of.err
	}
}

// readTaken reads the claims of a kind's queue, by their items.
func (w *Workflows) readTaken(ctx context.Context, kind string) (map[runItem]*Taken, error) {
	taken := map[runItem]*Taken{}
	q, err := w.store.queueOf(kind)
	if err != nil {
		return taken, err
	}
	claims, err := q.InFlight(ctx)
	for _, c := range claims {
		var item runItem
		if json.Unmarshal(c.Data, &item) == nil && c.Session != 0 {
			taken[item] = &Taken{c.Owner, c.Session, c.Since}
		}
	}
	return taken, err
}

// report describes a run. workflows is the path of the Workflows that have it.
func (r storedRun) report(workflows string) Report {
	i := Report{item: *r.item(r.id), Path: workflows, ID: r.id, Kind: r.Workflow, UUID: r.UUID,
		State: r.State, Input: r.Input, Result: r.Result, Error: r.Error, Failures: r.Failures,
		Started: r.stat.Ctime, Changed: r.stat.Mtime}
	if r.Parent != nil {
		i.Parent = r.Parent.ID
	}
	for _, w := range r.Waits {
		i.Waits = append(i.Waits, w.String())
	}
	return i
}

// String says what a run waits for.
func (w runWait) String() string {
	what := "time"
	switch {
	case w.Signal != "":
		what = fmt.Sprintf("signal %q", w.Signal)
		if w.Number > 1 {
			what += fmt.Sprintf(" number %d", w.Number)
		}
	case w.Child != "":
		what = fmt.Sprintf("child run %q", w.Child)
	case w.Retry:
		what = "retry"
	}
	if w.Until > 0 {
		what += " until " + time.UnixMilli(w.Until).UTC().Format("2006-01-02T15:04:05Z")
	}
	return what
}

// Inspect returns a run with its steps. It only reads, behind a sync; any client may call it. If no
// run has the id, it returns framework.ErrNotFound. If only the claims of the kind cannot be read,
// Report.TakenErr says so, and Inspect returns no error. Other errors wrap framework.ErrBadRecord,
// framework.ErrNewer, framework.ErrForeign, framework.ErrInvalid, framework.ErrNoAuth or the end of
// ctx.
func (w *Workflows) Inspect(ctx context.Context, id string) (report Report, err error) {
	if report, err = w.inspectSteps(ctx, id); err == nil {
		runs := []Report{report}
		w.setTaken(ctx, runs, takenRuns{})
		report = runs[0]
	}
	return report, err
}

func init() {
	moduleonly.HasWorkflows = hasLayout
	moduleonly.InspectSteps = func(ctx context.Context, workflows any, id string) (any, error) {
		return workflows.(*Workflows).inspectSteps(ctx, id)
	}
}

// inspectSteps is Inspect without Report.Taken.
func (w *Workflows) inspectSteps(ctx context.Context, id string) (report Report, err error) {
	if err = w.argumentErrorOr(checkName(id)); err == nil {
		err = recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
			r, err := w.store.read(ctx, s, id)
			if err != nil {
				return err
			}
			report = r.report(w.Path())
			children, err := w.store.children(ctx, s, r.node)
			if errors.Is(err, framework.ErrNoNode) {
				return recipe.ErrAgain
			}
			if err == nil {
				err = report.addChildren(r.node, children)
			}
			return err
		}, failure.IsTransient)
	}
	return report, failure.Wrap("inspect", w.Path(), err)
}

func (r *Report) addChildren(node string, children []childNode) error {
	for _, c := range children {
		switch kind, name := splitChild(c.name); kind {
		case stepPrefix:
			step, err := parseStep(znode.Join(node, c.name), c.Data)
			if err != nil {
				return err
			}
			r.Steps = append(r.Steps, step.describe(name, c.Stat.Ctime))
		case signalPrefix:
			r.Signals = append(r.Signals, name)
		}
	}
	return nil
}

// ListOption says which runs List yields. A run must pass all options.
type ListOption func(*listOptions) error

type listOptions struct {
	states        []State
	kinds         []string
	prefix, after string // of ids
	since         time.Time
}

func (o listOptions) matches(r runRecord, stat framework.Stat) bool {
	return (len(o.states) == 0 || slices.Contains(o.states, r.State)) &&
		(len(o.kinds) == 0 || slices.Contains(o.kinds, r.Workflow)) && !stat.Ctime.Before(o.since)
}

// WithStates leaves out the runs in other states.
func WithStates(states ...State) ListOption {
	return func(o *listOptions) error {
		for _, s := range states {
			if !s.isKnown() {
				return fmt.Errorf("%w: WithStates: %q is no state of a run", errOption, s)
			}
		}
		o.states = append(o.states, states...)
		return nil
	}
}

// WithKinds leaves out the runs of other kinds.
func WithKinds(names ...string) ListOption {
	return func(o *listOptions) error {
		for _, name := range names {
			if err := checkName(name); err != nil {
				return err
			}
		}
		o.kinds = append(o.kinds, names...)
		return nil
	}
}

// WithIDPrefix leaves out the runs whose ids begin otherwise. They are not read.
func WithIDPrefix(prefix string) ListOption {
	return func(o *listOptions) error { o.prefix = prefix; return nil }
}

// WithIDAfter leaves out the runs up to an id, in the order of the ids' bytes: the first page of
// List has none, and each next one has the id of the last run before. They are not read.
func WithIDAfter(id string) ListOption {
	return func(o *listOptions) error { o.after = id; return nil }
}

// WithStartedSince leaves out the runs that were started before t, by the clock of the ensemble's
// leader.
func WithStartedSince(t time.Time) ListOption {
	return func(o *listOptions) error { o.since = t; return nil }
}

// List yields all runs, or those that pass the options, in the order of their ids, without their
// steps. It reads them while it yields them, 500 after 500: to show pages, break out of the loop
// and go on later behind the last run (WithIDAfter). A run that is started or removed meanwhile may
// be left out. It yields an error for each run that cannot be read, and goes on: the error wraps
// framework.ErrBadRecord, framework.ErrNewer, framework.ErrForeign or framework.ErrNoAuth. Any
// other error is the last. If only the claims of a kind cannot be read, TakenErr of its active runs
// says so.
func (w *Workflows) List(ctx context.Context, opts ...ListOption) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		taken := takenRuns{}
		var nodes []string
		filter, err := recipe.ApplyOptions(listOptions{}, opts)
		if err = w.argumentErrorOr(err); err == nil {
			err = recipe.OnSession(ctx, w.store.client, func(s *framework.Session) (err error) {
				nodes, err = w.runNodes(ctx, s, filter)
				return err
			}, failure.IsTransient)
		}
		for some := range slices.Chunk(nodes, readAtOnce) {
			var runs []Report
			var unread []error
			err = recipe.OnSession(ctx, w.store.client, func(s *framework.Session) (err error) {
				runs, unread, err = w.readRuns(ctx, s, some, filter)
				return err
			}, failure.IsTransient)
			if err != nil {
				break
			}
			w.setTaken(ctx, runs, taken)
			for _, run := range runs {
				if !yield(run, nil) {
					return
				}
			}
			for _, wrong := range unread {
				if !yield(Report{}, wrong) {
					return
				}
			}
		}
		if err != nil {
			yield(Report{}, failure.Wrap("list", w.Path(), err))
		}
	}
}

// runNodes are the nodes of all runs whose ids pass the filter, in the order of the ids, behind a
// sync.
func (w *Workflows) runNodes(ctx context.Context, s *framework.Session,
	filter listOptions) (nodes []string, err error) {
	if err := s.Sync(ctx, w.Path()); err != nil {
		return nil, err
	}
	dirs := make([]string, shards)
	for n := range dirs {
		dirs[n] = w.store.shardDir(n)
	}
	lists, err := primitives.Of(s).ListAll(ctx, dirs...)
	if err != nil {
		return nil, err
	}
	for n, l := range lists {
		if l.Err != nil && !errors.Is(l.Err, framework.ErrNoNode) {
			return nil, l.Err
		}
		for _, name := range l.Names {
			if strings.HasPrefix(name, filter.prefix) && name > filter.after {
				nodes = append(nodes, znode.Join(dirs[n], name))
			}
		}
	}
	slices.SortFunc(nodes, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	return nodes, nil
}

// readRuns reads runs together, and returns those that pass the filter. An error that concerns one
// run comes beside the others.
func (w *Workflows) readRuns(ctx context.Context, s *framework.Session, nodes []string,
	filter listOptions) (runs []Report, unread []error, err error) {
	all, err := s.GetAll(ctx, nodes...)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range all {
		record, err := runRecord{}, n.Err
		if err == nil {
			record, err = parseRun(nodes[i], n.Data)
		}
		switch _, id := znode.Split(nodes[i]); {
		case errors.Is(err, framework.ErrNoNode), errors.Is(err, errNoRun): // it was removed
		case err != nil:
			unread = append(unread, failure.Wrap("read run", nodes[i], err))
		case filter.matches(record, n.Stat):
			runs = append(runs, storedRun{id: id, node: nodes[i], runRecord: record, stat: n.Stat}.report(w.Path()))
		}
	}
	return runs, unread, nil
}

// Wait waits until a run has finished and returns it, without its steps. If no run has the id, or
// the run is removed during the wait, it returns framework.ErrNotFound.
func (w *Workflows) Wait(ctx context.Context, id string) (report Report, err error) {
	if err = w.argumentErrorOr(checkName(id)); err == nil {
		report, err = w.wait(ctx, id, "")
	}
	return report, failure.Wrap("wait", w.Path(), err)
}

// wait waits for the run with a UUID, or with "" for the one that has the id now.
func (w *Workflows) wait(ctx context.Context, id, first string) (Report, error) {
	node := w.store.runNode(id)
	for value, err := range w.store.client.Follow(ctx, node) {
		if err != nil {
			return Report{}, err
		}
		if !value.Exists {
			return Report{}, fmt.Errorf("%w: %q", errNoRun, id)
		}
		r, err := parseRun(node, value.Data)
		if err != nil {
			return Report{}, err
		}
		if first == "" {
			first = r.UUID
		}
		if r.UUID != first {
			return Report{}, fmt.Errorf("%w: %q was removed, and its id is used again", errNoRun, id)
		}
		if r.State.IsFinished() {
			return storedRun{id: id, node: node, runRecord: r, stat: value.Stat}.report(w.Path()), nil
		}
	}
	return Report{}, failure.Ended(ctx)
}
