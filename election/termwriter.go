package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// storedTerm is a term's record as it was last read or written.
type storedTerm struct {
	termRecord
	version int32 // of the node
	known   bool
	missing bool // there is no record
}

// readTerm reads a term's record. A missing record has the number 0.
func readTerm(ctx context.Context, from nodeReader, path string) (storedTerm, error) {
	data, stat, err := from.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return storedTerm{known: true, missing: true}, nil
	}
	if err != nil {
		return storedTerm{}, err
	}
	r, err := decodeTerm(data)
	if err != nil {
		return storedTerm{}, fmt.Errorf("%s: %w", path, err)
	}
	return storedTerm{termRecord: r, version: stat.Version, known: true}, nil
}

// termWriter writes the election's record for one term, in transactions that the term's guard
// protects.
type termWriter struct {
	client  *framework.Client
	session *framework.Session // of the term
	path    string             // of the record
	node    string             // of the leader, which guard checks
	guard   func() framework.Op
	err     func() error // why the term has ended, or nil

	writing  chan struct{} // has room for the one call that may write
	last     storedTerm
	doubtful bool // a write has failed, and may have been applied: another server may lag behind it
}

// updateRecord replaces the record by change's result. Where a reply was lost, it reads the record
// to find out whether the write was applied.
func (w *termWriter) updateRecord(ctx context.Context, change func(termRecord) termRecord) error {
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
	pauses := recipe.RetryPauses{Client: w.client}
	for {
		began := time.Now()
		if err := w.readRecord(ctx); err != nil {
			return err
		}
		next := change(w.last.termRecord)
		if !w.last.missing && next.saysSame(w.last.termRecord) {
			return w.err()
		}
		err := w.writeRecord(ctx, next)
		if err == nil {
			return nil
		}
		w.last, w.doubtful = storedTerm{}, true // any error may follow a write that was applied
		if !errors.Is(err, errRecordChanged) {
			return err
		}
		if pauses.Wait(ctx, began) != nil {
			return failure.Ended(ctx)
		}
	}
}

// errRecordChanged says that another client has changed the record, or that the outcome of a write
// is unknown.
var errRecordChanged = errors.New("the record has changed")

// readRecord reads the record, unless it is known. Behind a sync, which a doubtful write needs, the
// server shows all earlier writes. Otherwise it may show an old record, and the next write fails.
func (w *termWriter) readRecord(ctx context.Context) error {
	if w.last.known {
		return nil
	}
	if w.doubtful {
		if err := w.session.Sync(ctx, w.path); err != nil {
			return err
		}
	}
	stored, err := readTerm(ctx, w.session, w.path)
	if err == nil {
		w.last, w.doubtful = stored, false
	}
	return err
}

// writeRecord writes the record if it is still the one that was read. Its error wraps
// errRecordChanged if it is not, or if the outcome is not known.
func (w *termWriter) writeRecord(ctx context.Context, next termRecord) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	op := framework.SetOp(w.path, data, w.last.version)
	if w.last.missing {
		op = framework.CreateOp(w.path, data, framework.Persistent)
	}
	results, err := w.client.Multi(ctx, w.guard(), op)
	var refused *framework.TxError
	switch {
	case err == nil:
		w.last = storedTerm{termRecord: next, version: results[1].Stat.Version, known: true}
		return nil
	case errors.Is(err, framework.ErrSuspended):
		return fmt.Errorf("%w: %w", errRecordChanged, err)
	case !errors.As(err, &refused):
		return err
	case refused.Index == 0:
		return guardRefusal(refused.Err, w.node)
	case recipe.IsConflict(refused.Err):
		return fmt.Errorf("%w: %w", errRecordChanged, err)
	}
	return err
}

// guardRefusal returns the error of a term whose guard was refused.
func guardRefusal(refused error, node string) error {
	if errors.Is(refused, framework.ErrNoNode) {
		return fmt.Errorf("%w: %s", framework.ErrNodeGone, node)
	}
	return refused
}
