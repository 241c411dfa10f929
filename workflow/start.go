package workflow

import (
	"bytes"
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

// StartOption changes how a run is started.
type StartOption func(*startOptions) error

type startOptions struct {
	with    []framework.Op
	keep    time.Duration
	delay   time.Duration
	signals map[string]json.RawMessage
}

// WithStartDelay makes members call the run's function first after d, at most five years. The run
// is Waiting until then: it may be cancelled, and gets signals. If the run exists, nothing changes.
func WithStartDelay(d time.Duration) StartOption {
	return func(o *startOptions) error {
		if d <= 0 || d > maxWait {
			return fmt.Errorf("%w: start delay %v, it must be more than 0 and at most %v", errOption, d, maxWait)
		}
		o.delay = d
		return nil
	}
}

// WithSignal starts the run with a signal, in one transaction. If Start finds the run, it gives it
// the signal as Workflows.Signal does, and returns the errors of that, too. So a sender need not
// know whether the run has been started.
func WithSignal(signal string, data any) StartOption {
	return func(o *startOptions) error {
		if err := checkName(signal); err != nil {
			return err
		}
		if _, twice := o.signals[signal]; twice {
			return fmt.Errorf("%w: signal %q is given twice", errOption, signal)
		}
		encoded, err := encodeValue("signal", data, MaxSignal)
		if err != nil {
			return err
		}
		if o.signals == nil {
			o.signals = map[string]json.RawMessage{}
		}
		o.signals[signal] = encoded
		return nil
	}
}

// WithKeptID keeps the run's id for d after the run's end, at least a minute and at most five
// years: the run is removed as others are, but until then Start with the same kind, id and input
// does nothing, and with another kind or input it returns ErrIDInUse. A node of about 200 bytes
// stays for that. Use it if a caller may repeat Start after the retention, as a job of a scheduler
// does after a pause.
func WithKeptID(d time.Duration) StartOption {
	return func(o *startOptions) error {
		if d < time.Minute || d > maxWait {
			return fmt.Errorf("%w: the id is kept for %v, it must be from a minute to %v", errOption, d, maxWait)
		}
		o.keep = d
		return nil
	}
}

// WithOps starts the run together with the caller's own operations, in one transaction: all of it
// happens, or no part. If the servers refuse one of them, Start returns framework.ErrRefused. They
// must not touch the nodes of the Workflows.
//
// If Start returns nil, this call has started the run and done the operations, once: after a lost
// reply or a lost session it reads first what was done. If a run with this id exists already, in
// any state, Start returns ErrIDInUse, also for the same kind and input, since the operations were
// not done by this call. So after the end of ctx, which leaves the outcome open, ErrIDInUse from
// the next call means that the former one was done, if the id is not used by others.
func WithOps(ops ...framework.Op) StartOption {
	return func(o *startOptions) error {
		o.with = append(o.with, ops...)
		return nil
	}
}

// start makes a run, unless it exists with the same kind, input and parent. It returns what is
// stored. With operations of the caller an existing run is ErrIDInUse, unless this call has made
// it.
func (store *runStore) start(ctx context.Context, id string, r runRecord,
	cfg startOptions) (stored storedRun, err error) {
	r = r.begin()
	var signals []framework.Op
	for name, data := range cfg.signals {
		record, err := encodeRecord(signalRecord{Data: data})
		if err != nil {
			return stored, err
		}
		signals = append(signals,
			framework.CreateOp(znode.Join(store.runNode(id), signalPrefix+name), record, framework.Persistent))
	}
	var refused error // why an operation of the caller's was refused
	err = recipe.OnSession(ctx, store.client, func(s *framework.Session) error {
		if cfg.delay > 0 && r.State == Active {
			now, err := store.now(ctx, s)
			if err != nil {
				return err
			}
			r.State, r.Waits = Waiting, []runWait{{Until: now.Add(cfg.delay).UnixMilli() + 1}}
		}
		stored, err = store.startOnce(ctx, s, id, r, startOps{own: signals, callers: cfg.with})
		if refused = nil; errors.Is(err, errRefused) {
			// for good, also if the reason is that the session of a guard's lease was lost
			refused, err = err, nil
		}
		return err
	}, failure.IsTransient)
	if err == nil {
		err = refused
	}
	switch {
	case err != nil || stored.UUID == r.UUID:
		return stored, err
	case len(cfg.with) > 0:
		return stored, fmt.Errorf("%w: run %q exists, and the operations of WithOps were not done", ErrIDInUse, id)
	}
	if err := checkSameStart(stored, r); err != nil {
		return stored, err
	}
	for name, data := range cfg.signals {
		if err := store.signal(ctx, id, name, signalRecord{Data: data}); err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// startOps are the operations of a transaction that starts a run. The guards come before the
// creation of the run, its own nodes and the caller's operations behind it: if the run exists, that
// is why the servers refuse.
type startOps struct{ guards, own, callers []framework.Op }

// startOnce makes a run, or reads the one that exists. A *framework.TxError says that the servers
// refuse one of the guards.
func (store *runStore) startOnce(ctx context.Context, s *framework.Session, id string, r runRecord,
	with startOps) (stored storedRun, err error) {
	data, err := r.encode()
	if err != nil {
		return stored, err
	}
	delay, _, err := store.delayOf(ctx, s, r.Waits)
	if err != nil {
		return stored, err
	}
	node := store.runNode(id)
	ops := slices.Concat(with.guards, []framework.Op{framework.CreateOp(node, data, framework.Persistent)}, with.own,
		with.callers)
	err = store.commit(ctx, s, transition{kind: r.Workflow, item: r.item(id), delay: delay, ops: ops,
		callerOps: len(with.callers)})
	var refused *framework.TxError
	switch {
	case err == nil:
		return storedRun{id: id, node: node, runRecord: r}, nil // in its first version
	case errors.Is(err, framework.ErrRefused) && errors.As(err, &refused) && refused.Index < len(with.guards):
		return stored, refused
	case !errors.Is(err, recipe.ErrAgain):
		return stored, err
	}
	stored, err = store.read(ctx, s, id)
	if errors.Is(err, errNoRun) {
		return store.readFormer(ctx, s, id, r)
	}
	return stored, err
}

// readFormer reads what has stayed of a run that was removed. A run that was started as r counts as
// one that exists, in a record without a UUID.
func (store *runStore) readFormer(ctx context.Context, s *framework.Session, id string,
	r runRecord) (storedRun, error) {
	node := store.runNode(id)
	data, _, err := s.Get(ctx, node)
	if errors.Is(err, framework.ErrNoNode) {
		return storedRun{}, recipe.ErrAgain
	}
	if err != nil {
		return storedRun{}, err
	}
	f, err := parseFormer(node, data)
	switch {
	case errors.Is(err, errForeign): // another run since
		return storedRun{}, recipe.ErrAgain
	case err != nil:
		return storedRun{}, err
	case r.Parent != nil || f.Workflow != r.Workflow || f.Input != r.former(time.Time{}).Input:
		return storedRun{}, fmt.Errorf(
			"%w: run %q was a %q with another input or parent. It was removed, and its id is kept until %s", ErrIDInUse,
			id, f.Workflow,
			time.UnixMilli(f.Until).UTC().Format(time.RFC3339))
	}
	r.UUID = ""
	return storedRun{id: id, node: node, runRecord: r}, nil
}

// checkSameStart returns ErrIDInUse unless a stored run was started with the kind, the input and
// the parent of r.
func checkSameStart(stored storedRun, r runRecord) error {
	switch {
	case stored.Workflow != r.Workflow || !bytes.Equal(stored.Input, r.Input):
		before, now := shortenDifference(stored.Input, r.Input)
		return fmt.Errorf("%w: run %q is a %s with input %s, not a %s with input %s", ErrIDInUse, stored.id,
			stored.Workflow, before, r.Workflow, now)
	case (stored.Parent == nil) != (r.Parent == nil) || r.Parent != nil && *stored.Parent != *r.Parent:
		return fmt.Errorf("%w: run %q was not started by the same parent run", ErrIDInUse, stored.id)
	}
	return nil
}
