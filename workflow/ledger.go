package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Executor is a hold that permits its process to run steps: a *locks.Lease, an *election.Term or a
// *queue.Delivery. Its client has the same root as the ledger's client.
type Executor interface {
	// Context ends when another process may execute. Its cause says why.
	Context() context.Context
	// Guard is an operation with which the servers refuse a transaction once the executor has
	// ended.
	Guard() framework.Op
	// Token rises from executor to executor.
	Token() int64
}

// Ledger is a node with one record for each finished step of some work. Its methods are safe for
// concurrent use.
type Ledger struct {
	client *framework.Client
	path   string
	tel    telemetry
	err    error // of NewLedger's arguments
}

// NewLedger returns the ledger at path. It sends no request. If an argument is invalid, every call
// returns an error that says so.
func NewLedger(client *framework.Client, path string) *Ledger {
	l := &Ledger{client: client, path: path, err: recipe.CheckClientAndPath(client, path, "a ledger")}
	if l.err == nil {
		l.tel = newTelemetry(client)
	}
	return l
}

// Path is the ledger's path.
func (l *Ledger) Path() string { return l.path }

// Validate returns what is wrong with the arguments of NewLedger, as every call does, or nil. It
// sends no request.
func (l *Ledger) Validate() error { return l.err }

// Records returns the steps that have records, in the order in which they were recorded. It reads
// behind a sync, and needs no executor. A missing ledger has no records. The error wraps
// framework.ErrBadRecord, framework.ErrNewer, framework.ErrForeign, framework.ErrNoAuth or the end
// of ctx.
func (l *Ledger) Records(ctx context.Context) (records []StepRecord, err error) {
	err = l.err
	if err == nil {
		err = recipe.OnSession(ctx, l.client, func(s *framework.Session) error {
			if err := s.Sync(ctx, l.path); err != nil {
				return err
			}
			records, err = l.readRecords(ctx, s)
			return err
		}, failure.IsTransient)
	}
	return records, failure.Wrap("records", l.path, err)
}

func (l *Ledger) readRecords(ctx context.Context, s *framework.Session) (records []StepRecord, err error) {
	created := map[string]int64{}
	err = l.eachRecord(ctx, s, func(name string, r stepRecord, stat framework.Stat) {
		created[name] = stat.Czxid
		records = append(records, r.describe(name, stat.Ctime))
	})
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.SortFunc(records, func(a, b StepRecord) int { return cmp.Compare(created[a.Name], created[b.Name]) })
	return records, err
}

// eachRecord calls f for each finished step.
func (l *Ledger) eachRecord(ctx context.Context, s *framework.Session,
	f func(name string, r stepRecord, stat framework.Stat)) error {
	nodes, err := l.stepNodes(ctx, s)
	if err != nil || len(nodes) == 0 {
		return err
	}
	all, err := s.GetAll(ctx, nodes...)
	if err != nil {
		return err
	}
	for i, n := range all {
		if errors.Is(n.Err, framework.ErrNoNode) { // deleted since
			continue
		}
		if n.Err != nil {
			return n.Err
		}
		r, err := parseStep(nodes[i], n.Data)
		if err != nil {
			return err
		}
		f(strings.TrimPrefix(nodes[i], l.stepNode("")), r, n.Stat)
	}
	return nil
}

// stepNodes are the nodes of the finished steps.
func (l *Ledger) stepNodes(ctx context.Context, s *framework.Session) (nodes []string, err error) {
	names, _, err := s.Children(ctx, l.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, stepPrefix) {
			return nil, fmt.Errorf("%w: %q below %s is no step", errForeign, name, l.path)
		}
		nodes = append(nodes, znode.Join(l.path, name))
	}
	return nodes, nil
}

func (l *Ledger) stepNode(name string) string { return znode.Join(l.path, stepPrefix+name) }

// Forget deletes the records of steps, in one transaction with the executor's guard, so that the
// steps are run again. To go back to a step, name that step and all later ones. Names without a
// record are no error. An OpenLedger still knows the deleted records: open the ledger again. The
// keys of the steps stay the same. The error wraps ErrEnded if the executor has ended; then the
// records may be deleted or not.
func (l *Ledger) Forget(ctx context.Context, e Executor, names ...string) error {
	err := l.onSession(ctx, e, func(ctx context.Context, s *framework.Session) error {
		return l.deleteSteps(ctx, s, e, func(node string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return node == l.stepNode(name) })
		})
	})
	return failure.Wrap("forget", l.path, err)
}

// Remove deletes the ledger with all its records, in one transaction with the executor's guard.
// When a ledger is opened at the path again, its steps have other keys. If the ledger is missing,
// Remove does nothing. The error is as for Forget.
func (l *Ledger) Remove(ctx context.Context, e Executor) error {
	err := l.onSession(ctx, e, func(ctx context.Context, s *framework.Session) error {
		return l.deleteSteps(ctx, s, e, func(string) bool { return true },
			framework.DeleteOp(l.path, framework.AnyVersion))
	})
	return failure.Wrap("remove", l.path, err)
}

// deleteSteps deletes the nodes of steps that match, and does more, in one transaction.
func (l *Ledger) deleteSteps(ctx context.Context, s *framework.Session, e Executor, match func(node string) bool,
	more ...framework.Op) error {
	if err := s.Sync(ctx, l.path); err != nil { // else a record of the former executor may stay
		return err
	}
	nodes, err := l.stepNodes(ctx, s)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	ops := guardsOf(e)
	guards := len(ops)
	for _, node := range nodes {
		if match(node) {
			ops = append(ops, framework.DeleteOp(node, framework.AnyVersion))
		}
	}
	if ops = append(ops, more...); len(ops) == guards {
		return nil
	}
	_, err = s.Multi(ctx, ops...)
	if !isGuardRefusal(e, err) && (errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNotEmpty)) {
		return recipe.ErrAgain // a record came or went meanwhile
	}
	return err
}

// onSession calls step on a session, and again after transient errors, while ctx and the executor
// last.
func (l *Ledger) onSession(ctx context.Context, e Executor,
	step func(ctx context.Context, s *framework.Session) error) error {
	if l.err != nil {
		return l.err
	}
	if isNil(e) {
		return fmt.Errorf("%w: the executor is nil", errOption)
	}
	within, stop := whileExecuting(ctx, e)
	defer stop()
	err := recipe.OnSession(within, l.client, func(s *framework.Session) error { return step(within, s) },
		failure.IsTransient)
	switch {
	case err == nil:
		return nil
	case isGuardRefusal(e, err):
		return fmt.Errorf("%w: the servers refuse its guard: %w", ErrEnded, err)
	case e.Context().Err() != nil:
		return endedError(e)
	case ctx.Err() != nil:
		return failure.Ended(ctx)
	}
	return err
}

// whileExecuting returns a context that ends with ctx and with the executor. Call stop when it is
// no longer needed.
func whileExecuting(ctx context.Context, e Executor) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(e.Context(), func() { cancel(endedError(e)) })
	return within, func() {
		unwatch()
		cancel(nil)
	}
}

// endedError is the error of an executor that has ended.
func endedError(e Executor) error { return fmt.Errorf("%w: %w", ErrEnded, context.Cause(e.Context())) }

// guardsOf are the operations with which the servers refuse a transaction of an executor that has
// ended. They come first in each transaction.
func guardsOf(e Executor) []framework.Op {
	if several, ok := e.(interface{ guards() []framework.Op }); ok {
		return several.guards()
	}
	return []framework.Op{e.Guard()}
}

// isGuardRefusal reports whether the servers refused one of the guards.
func isGuardRefusal(e Executor, err error) bool {
	var refused *framework.TxError
	return errors.As(err, &refused) && refused.Index < len(guardsOf(e))
}

// isNil reports whether the value of an interface is nil, or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
