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

// Open reads the records, and makes the ledger if it is missing, while the executor stands. It knows each record that an executor before this one has written. Steps of
// the Run are recorded under the executor's guard.
func (l *Ledger) Open(ctx context.Context, e Executor) (*Run, error) {
	var run *Run
	err := l.onSession(ctx, e, func(ctx context.Context, s *framework.Session) (err error) {
		run, err = l.openRun(ctx, s, e)
		return err
	})
	if err != nil {
		return nil, failure.Wrap("open", l.path, err)
	}
	return run, nil
}

func (l *Ledger) openRun(ctx context.Context, s *framework.Session, e Executor) (*Run, error) {
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
	run := &Run{ledger: l, executor: e, id: header.ID, own: uuid.NewString(), results: map[string][]byte{}, names: map[string]nameState{}}
	err = l.eachRecord(ctx, s, func(name string, r stepRecord, _ framework.Stat) {
		run.results[name] = r.Result
		run.size += len(r.Result)
	})
	if err != nil {
		return nil, err
	}
	return run, nil
}

// createLedger makes the ledger. It returns an error: ErrAgain once the ledger can be read.
func (l *Ledger) createLedger(ctx context.Context, s *framework.Session, e Executor) error {
	data, err := encodeRecord(ledgerRecord{Kind: ledgerKind, ID: uuid.NewString()})
	if err != nil {
		return err
	}
	dir, _ := znode.Split(l.path)
	if err := s.MakeDirs(ctx, dir); err != nil {
		return err
	}
	_, err = s.Multi(ctx, append(guardsOf(e), framework.CreateOp(l.path, data, framework.Persistent))...)
	if err == nil || !isGuardRefusal(e, err) && (errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode)) {
		return recipe.ErrAgain
	}
	return err
}
