package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// store reads and writes the nodes that all members share. Its methods take the session on which
// they work, so that callers decide what to do when the session is lost.
type store struct {
	client  *framework.Client
	nodes   joblayout.Scheduler
	history int64 // how many ended runs of a job are kept
}

// onSession repeats f on session after session until its outcome is known, or ctx ends.
func (s *store) onSession(ctx context.Context, f recipe.Step) error {
	return recipe.OnSession(ctx, s.client, f, shouldRetry, failure.IsTransient,
		func(err error) bool { return errors.Is(err, framework.ErrNodeExists) })
}

// shouldRetry reports whether to try a refused or unanswered write once more after reading the
// state again.
func shouldRetry(err error) bool {
	return errors.Is(err, framework.ErrSuspended) || errors.Is(err, framework.ErrBadVersion) ||
		errors.Is(err, framework.ErrNoNode)
}

// ensembleTime returns the ensemble's time, from a write that has no other effect.
func (s *store) ensembleTime(ctx context.Context, session *framework.Session) (time.Time, error) {
	return new(recipe.EnsembleClock).ReadTime(ctx, session, s.nodes.Jobs())
}

// createState registers a job that has no node.
func (s *store) createState(ctx context.Context, session *framework.Session, job string, d declaration) error {
	data, err := jobState{Spec: d.spec, Zone: d.zone, Revision: d.revision, Description: d.description,
		JitterMS: d.jitter.Milliseconds()}.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, s.nodes.Jobs()); err != nil {
		return err
	}
	return session.Create(ctx, s.nodes.Job(job), data, framework.Persistent)
}

// createRecord creates one of the records that exist once for all jobs.
func (s *store) createRecord(ctx context.Context, session *framework.Session, node string,
	r interface{ encode() ([]byte, error) }) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, string(s.nodes)); err != nil {
		return err
	}
	err = session.CreateIfMissing(ctx, node, data, framework.Persistent)
	if errors.Is(err, framework.ErrNoNode) {
		return nil // the directory was deleted: the caller reads again
	}
	return err
}

// maxHistoryBytes bounds what a transaction records in a job's history.
const maxHistoryBytes = 256 << 10

// historyOps returns the operations that record ended runs. The history of a job is a ring of nodes
// beside its claims: run n is in slot n modulo the ring's size. So the transaction that ends a run
// records it without reading anything. If a member has died with many runs, the latest of them are
// recorded, as many as the ring and maxHistoryBytes permit. children, unless it is nil, are the
// names of the job's children: then the servers are not asked first whether each slot exists.
func (s *store) historyOps(job string, children map[string]bool, runs ...storedRun) ([]tolerantOp, error) {
	latest := slices.SortedFunc(slices.Values(runs),
		func(a, b storedRun) int { return cmp.Compare(b.Number, a.Number) })
	var ops []tolerantOp
	size := 0
	for _, r := range latest[:min(int64(len(latest)), s.history)] {
		if r.Number <= latest[0].Number-s.history {
			break // a later run has its slot
		}
		data, err := encodeRun(r)
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxHistoryBytes && len(ops) > 0 {
			break
		}
		node := s.nodes.PastRun(job, r.Number%s.history)
		_, name := znode.Split(node)
		create, set := framework.CreateOp(node, data, framework.Persistent),
			framework.SetOp(node, data, framework.AnyVersion)
		if missing := r.Number <= s.history; missing && children == nil || children != nil && !children[name] {
			ops = append(ops, tolerantOp{create, framework.ErrNodeExists, &set})
		} else {
			ops = append(ops, tolerantOp{set, framework.ErrNoNode, &create})
		}
	}
	slices.Reverse(ops)
	return ops, nil
}

// deleteHistoryOps returns the operations that delete a job's history, and whether one of its runs
// has a claim.
func (s *store) deleteHistoryOps(ctx context.Context, session *framework.Session,
	job string) (ops []tolerantOp, claimed bool, err error) {
	children, _, err := session.Children(ctx, s.nodes.Job(job))
	for _, child := range children {
		if joblayout.IsPastRun(child) {
			op := framework.DeleteOp(znode.Join(s.nodes.Job(job), child), framework.AnyVersion)
			ops = append(ops, tolerantOp{op: op, refused: framework.ErrNoNode})
		}
		claimed = claimed || joblayout.IsClaim(child)
	}
	return ops, claimed, err
}

// storedState decodes the node of a job.
func storedState(at joblayout.Scheduler, name string, n framework.Node) (State, error) {
	if err := validName(name); err != nil {
		return State{}, failure.Wrap("state", string(at), err)
	}
	if errors.Is(n.Err, framework.ErrNoNode) {
		return State{}, failure.Wrap("state", string(at), fmt.Errorf("%w %q", errUnknownJob, name))
	}
	if n.Err != nil {
		return State{}, failure.Wrap("state", at.Job(name), n.Err)
	}
	state, err := decodeState(n.Data)
	if err == nil && !state.Removed.IsZero() {
		err = fmt.Errorf("%w %q", errUnknownJob, name)
	}
	if err != nil {
		return State{}, failure.Wrap("state", at.Job(name), err)
	}
	if state.Registered = state.Reregistered; state.Registered.IsZero() {
		state.Registered = n.Stat.Ctime.UTC()
	}
	return state.publicState(name), nil
}

// storedRuns decodes the records of runs that have ended. Those that have been replaced or removed
// meanwhile are left out.
func storedRuns(read []framework.Node) (runs []RunRecord, err error) {
	for _, n := range read {
		if errors.Is(n.Err, framework.ErrNoNode) {
			continue
		}
		if n.Err != nil {
			return nil, n.Err
		}
		r, err := decodeRun(n.Data)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r.RunRecord)
	}
	return runs, nil
}

// mergeRuns puts the runs that go on and those that have ended in order, the newest first.
func mergeRuns(running, ended []RunRecord) []RunRecord {
	runs := slices.Concat(running, ended)
	slices.SortFunc(runs, func(a, b RunRecord) int { return int(b.Number - a.Number) })
	return slices.CompactFunc(runs, func(a, b RunRecord) bool { return a.Number == b.Number })
}

// tolerantOp is an operation of a transaction that may be refused. If the servers refuse it with
// the error refused, the transaction is repeated with another operation in its place, or without
// it.
type tolerantOp struct {
	op      framework.Op
	refused error         // nil: any refusal fails the transaction
	instead *framework.Op // nil: the transaction is repeated without the operation
}

// multiTolerant runs a transaction, and repeats it while a tolerated refusal is its only fault.
// Operations that may be left out must come after those that stay.
func multiTolerant(ctx context.Context, session *framework.Session, ops []tolerantOp) ([]framework.OpResult, error) {
	ops = slices.Clone(ops)
	for {
		plain := make([]framework.Op, len(ops))
		for i, o := range ops {
			plain[i] = o.op
		}
		results, err := session.Multi(ctx, plain...)
		var tx *framework.TxError
		if !errors.As(err, &tx) || ops[tx.Index].refused == nil || !errors.Is(tx, ops[tx.Index].refused) {
			return results, err
		}
		if instead := ops[tx.Index].instead; instead != nil {
			ops[tx.Index] = tolerantOp{op: *instead}
		} else {
			ops = slices.Delete(ops, tx.Index, tx.Index+1)
		}
	}
}
