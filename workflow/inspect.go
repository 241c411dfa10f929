package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Info describes a run.
type Info struct {
	// ID is the id that Start was given. Kind is the run's kind.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// State is where the run is in its life.
	State State `json:"state"`
	// Input and Result are JSON. Only a run that is Done has a result.
	Input  json.RawMessage `json:"input"`
	Result json.RawMessage `json:"result,omitempty"`
	// Error is that of the latest failed attempt, or why the run has Failed or was Cancelled.
	Error string `json:"error,omitempty"`
	// Failures is how many attempts have failed since the run last waited.
	Failures int `json:"failures,omitempty"`
	// Waits is what a Waiting run waits for, in words.
	Waits []string `json:"waits,omitempty"`
	// Parent is the id of the run that has started this one, or "".
	Parent string `json:"parent,omitempty"`
	// StartedAt and ChangedAt are the times of the start and of the latest change of the record, by the clock of the ensemble's leader. Of a run that has
	// ended, ChangedAt is the time of the end. Steps do not change the record.
	StartedAt time.Time `json:"startedAt"`
	ChangedAt time.Time `json:"changedAt"`
	// Steps are the finished steps in their order. Only Inspect reads them.
	Steps []StepRecord `json:"steps,omitempty"`
	// Signals are the names of the signals that have come. Only Inspect reads them.
	Signals []string `json:"signals,omitempty"`
}

func (r storedRun) info() Info {
	i := Info{ID: r.name, Kind: r.Workflow, State: r.State, Input: r.Input, Result: r.Result, Error: r.Error, Failures: r.Failures,
		StartedAt: r.stat.Ctime, ChangedAt: r.stat.Mtime}
	if r.Parent != nil {
		i.Parent = r.Parent.Run
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

// Inspect returns a run with its steps. Anyone may call it. A missing run is ErrNoRun.
func (w *Workflows) Inspect(ctx context.Context, id string) (info Info, err error) {
	if err = w.orUnusable(checkName(id)); err == nil {
		err = recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
			r, err := w.store.read(ctx, s, id)
			if err != nil {
				return err
			}
			info = r.info()
			children, err := w.store.children(ctx, s, r.node)
			if errors.Is(err, framework.ErrNoNode) {
				return recipe.ErrAgain
			}
			if err == nil {
				err = info.addChildren(r.node, children)
			}
			return err
		}, failure.IsTransient)
	}
	return info, failure.Wrap("inspect", w.Path(), err)
}

func (i *Info) addChildren(node string, children []childNode) error {
	for _, c := range children {
		switch kind, name := splitChild(c.name); kind {
		case stepPrefix:
			r, err := parseStep(znode.Join(node, c.name), c.Data)
			if err != nil {
				return err
			}
			i.Steps = append(i.Steps, StepRecord{name, r.Result, r.Token, r.Attempts, time.Duration(r.Millis) * time.Millisecond, c.Stat.Ctime})
		case signalPrefix:
			i.Signals = append(i.Signals, name)
		}
	}
	return nil
}

// List returns all runs, the oldest first, without their steps. A run that cannot be read is left out and logged.
func (w *Workflows) List(ctx context.Context) (runs []Info, err error) {
	if err = w.err; err == nil {
		err = recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
			runs, err = w.list(ctx, s)
			return err
		}, failure.IsTransient)
	}
	return runs, failure.Wrap("list", w.Path(), err)
}

// readAtOnce is how many runs are read in one request.
const readAtOnce = 500

func (w *Workflows) list(ctx context.Context, s *framework.Session) ([]Info, error) {
	if err := s.Sync(ctx, w.Path()); err != nil {
		return nil, err
	}
	dirs := make([]string, shards)
	for n := range dirs {
		dirs[n] = w.store.shardDir(n)
	}
	lists, err := s.Primitives().ListAll(ctx, dirs...)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for n, l := range lists {
		if l.Err != nil && !errors.Is(l.Err, framework.ErrNoNode) {
			return nil, l.Err
		}
		for _, name := range l.Names {
			nodes = append(nodes, znode.Join(dirs[n], name))
		}
	}
	runs := make([]Info, 0, len(nodes))
	for some := range slices.Chunk(nodes, readAtOnce) {
		if runs, err = w.appendRuns(ctx, s, runs, some); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(a, b Info) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID)) })
	return runs, nil
}

func (w *Workflows) appendRuns(ctx context.Context, s *framework.Session, runs []Info, nodes []string) ([]Info, error) {
	all, err := s.GetAll(ctx, nodes...)
	if errors.Is(err, framework.ErrTooLarge) && len(nodes) > 1 { // large inputs
		half := len(nodes) / 2
		if runs, err = w.appendRuns(ctx, s, runs, nodes[:half]); err == nil {
			runs, err = w.appendRuns(ctx, s, runs, nodes[half:])
		}
		return runs, err
	}
	if err != nil {
		return nil, err
	}
	for i, n := range all {
		if errors.Is(n.Err, framework.ErrNoNode) {
			continue
		}
		if n.Err != nil {
			return nil, n.Err
		}
		record, err := parseRun(nodes[i], n.Data)
		if err != nil {
			w.store.client.Logger().Warn("a run cannot be read", "path", nodes[i], "error", err)
			continue
		}
		_, name := znode.Split(nodes[i])
		runs = append(runs, storedRun{name: name, node: nodes[i], runRecord: record, stat: n.Stat}.info())
	}
	return runs, nil
}

// Wait waits until a run has finished and returns it, without its steps. A missing run is ErrNoRun.
func (w *Workflows) Wait(ctx context.Context, id string) (info Info, err error) {
	if err = w.orUnusable(checkName(id)); err == nil {
		info, err = w.wait(ctx, id)
	}
	return info, failure.Wrap("wait", w.Path(), err)
}

func (w *Workflows) wait(ctx context.Context, id string) (Info, error) {
	node := w.store.runNode(id)
	for value, err := range w.store.client.Follow(ctx, node) {
		if err != nil {
			return Info{}, err
		}
		if !value.Exists {
			return Info{}, fmt.Errorf("%w: %q", ErrNoRun, id)
		}
		r, err := parseRun(node, value.Data)
		if err != nil {
			return Info{}, err
		}
		if r.State.IsFinished() {
			return storedRun{name: id, node: node, runRecord: r, stat: value.Stat}.info(), nil
		}
	}
	return Info{}, failure.Ended(ctx)
}

// Result waits until a run has finished and returns its result. A run that has failed or was cancelled is ErrFailed or ErrCancelled, with the reason. A
// result that does not decode into O is ErrResult.
func Result[O any](ctx context.Context, w *Workflows, id string) (O, error) {
	var result, none O
	info, err := w.Wait(ctx, id)
	if err == nil {
		err = storedRun{name: id, runRecord: runRecord{State: info.State, Error: info.Error}}.outcome()
		if err == nil {
			if err = json.Unmarshal(info.Result, &result); err != nil {
				err = fmt.Errorf("%w: %s is no %T: %w", ErrResult, shortenResult(info.Result), result, err)
			}
		}
	}
	if err != nil {
		return none, failure.Wrap("result", w.Path(), err)
	}
	return result, nil
}
