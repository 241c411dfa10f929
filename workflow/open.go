package workflow

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// OpenLedger is a ledger that an executor has opened: it knows the records of all executors before,
// and records steps under the guard of its own executor.
type OpenLedger struct{ *stepRecorder }

// Path is the ledger's path.
func (l *OpenLedger) Path() string { return l.ledger.path }

// Open reads the records while the executor's hold lasts, and creates the ledger if it is missing.
// It reads each record that an executor before this one has written. Steps of the OpenLedger are
// recorded under the executor's guard.
func (l *Ledger) Open(ctx context.Context, e Executor) (*OpenLedger, error) {
	var opened *OpenLedger
	err := l.onSession(ctx, e, func(ctx context.Context, s *framework.Session) (err error) {
		opened, err = l.readOrCreate(ctx, s, e)
		return err
	})
	if err != nil {
		return nil, failure.Wrap("open", l.path, err)
	}
	return opened, nil
}

// readOrCreate reads the ledger and its records. If the ledger is missing, it creates the ledger
// and returns ErrAgain.
func (l *Ledger) readOrCreate(ctx context.Context, s *framework.Session, e Executor) (*OpenLedger, error) {
	// The server may lag behind what the former executor has recorded.
	if err := s.Sync(ctx, l.path); err != nil {
		return nil, err
	}
	data, _, err := s.Get(ctx, l.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, l.createLedger(ctx, s, e)
	}
	if err != nil {
		return nil, err
	}
	header, err := parseLedger(l.path, data)
	if err != nil {
		return nil, err
	}
	opened := &OpenLedger{newStepRecorder(l, e, header.UUID)}
	err = l.eachRecord(ctx, s, func(name string, r stepRecord, _ framework.Stat) { opened.addRecord(name, r) })
	if errors.Is(err, framework.ErrNoNode) { // another executor has removed the ledger meanwhile
		return nil, recipe.ErrAgain
	}
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// createLedger creates the ledger. It always returns an error: ErrAgain when the ledger can be
// read.
func (l *Ledger) createLedger(ctx context.Context, s *framework.Session, e Executor) error {
	data, err := encodeRecord(ledgerRecord{Kind: ledgerKind, UUID: uuid.NewString()})
	if err != nil {
		return err
	}
	dir, _ := znode.Split(l.path)
	if err := s.MakeDirs(ctx, dir); err != nil {
		return err
	}
	_, err = s.Multi(ctx, append(guardsOf(e), framework.CreateOp(l.path, data, framework.Persistent))...)
	if err == nil || !isGuardRefusal(e, err) && (errors.Is(err, framework.ErrNodeExists) ||
		errors.Is(err, framework.ErrNoNode)) {
		return recipe.ErrAgain
	}
	return err
}
