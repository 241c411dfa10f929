package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// stored is a term's record as it was last seen.
type stored struct {
	termRecord
	version int32
	known   bool // it was seen at all
	missing bool // there was none
}

// inaugurate makes the lease a term: it counts the term in the election's record, guarded by the
// winner's node. A winner whose node is gone, or was passed over by a transfer, finds out here: before
// this is done nobody is told that it leads.
func (t *Term) inaugurate(ctx context.Context) error {
	t.since = time.Now().UTC()
	err := t.write(ctx, func(old termRecord) termRecord {
		if old.Token == t.Token() { // written already, but the reply was lost
			return old
		}
		return t.describe(old.Number+1, t.election.metadata, old.rest)
	})
	t.number = t.record.Number
	return err
}

func (t *Term) describe(number int64, m Metadata, rest record) termRecord {
	_, name := framework.Split(t.Node())
	return termRecord{Number: number, Token: t.Token(), Node: name, ID: t.ID(), Since: t.since, Metadata: m, rest: rest}
}

// Update replaces what the leader tells others of itself. It is written only while the term stands: the error
// is why it ended otherwise, or that of ctx, and then it may have been written nevertheless. The next
// term begins with what WithMetadata says.
func (t *Term) Update(ctx context.Context, m Metadata) error {
	err := m.check()
	if err == nil {
		m = m.clone()
		err = t.write(ctx, func(old termRecord) termRecord { return t.describe(t.number, m, old.rest) })
	}
	return framework.Wrap("update", t.election.path, err)
}

// write replaces the record by what change makes of it, in a transaction guarded by the term. Where a reply
// was lost, the record itself tells whether it was written.
func (t *Term) write(ctx context.Context, change func(termRecord) termRecord) error {
	select {
	case t.writing <- struct{}{}:
		defer func() { <-t.writing }()
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
	for {
		if err := t.read(ctx); err != nil {
			return err
		}
		next := change(t.record.termRecord)
		if !t.record.missing && next.same(t.record.termRecord) {
			return t.Err()
		}
		err := t.put(ctx, next)
		if err == nil {
			return nil
		}
		t.record, t.doubtful = stored{}, true // whatever the error is, it may have been written
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// errOvertaken says that the record is another one than was read, or may be.
var errOvertaken = errors.New("the record has changed")

// read reads the record, unless it is known. Behind a sync, which is needed when a write may have been done, the
// server shows what was written before; else what it shows may be old, which the write will tell.
func (t *Term) read(ctx context.Context) error {
	if t.record.known {
		return nil
	}
	s, err := t.session(ctx)
	if err == nil && t.doubtful {
		err = s.Sync(ctx, t.election.termPath())
	}
	if err != nil {
		return err
	}
	if t.record, err = readTerm(ctx, s, t.election.termPath()); err == nil {
		t.doubtful = false
	}
	return err
}

// session is the session that the term lives with.
func (t *Term) session(ctx context.Context) (*framework.Session, error) {
	s, err := t.election.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if s.ID() != t.Session() {
		return nil, fmt.Errorf("%w: another one has begun", framework.ErrSessionLost)
	}
	return s, nil
}

func (e *Election) termPath() string { return e.path + termSuffix }

// readTerm reads a term's record; a missing one has the number 0.
func readTerm(ctx context.Context, from getter, path string) (stored, error) {
	data, st, err := from.Get(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return stored{known: true, missing: true}, nil
	}
	if err != nil {
		return stored{}, err
	}
	r, err := decodeTerm(data)
	if err != nil {
		return stored{}, fmt.Errorf("%s: %w", path, err)
	}
	return stored{termRecord: r, version: st.Version, known: true}, nil
}

// put writes the record if it is still the one that was read. Its error wraps errOvertaken if it is not, or
// if nobody knows.
func (t *Term) put(ctx context.Context, next termRecord) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	op := framework.SetOp(t.election.termPath(), data, t.record.version)
	if t.record.missing {
		op = framework.CreateOp(t.election.termPath(), data, framework.Persistent)
	}
	results, err := t.election.client.Multi(ctx, t.Guard(), op)
	var refused *framework.TxError
	switch {
	case err == nil:
		t.record = stored{termRecord: next, version: results[1].Stat.Version, known: true}
		return nil
	case errors.Is(err, framework.ErrSuspended):
		return fmt.Errorf("%w: %w", errOvertaken, err)
	case !errors.As(err, &refused):
		return err
	case refused.Index == 0:
		return t.lost(refused.Err)
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", errOvertaken, err)
}

// lost tells why the term's guard has refused.
func (t *Term) lost(refused error) error {
	if errors.Is(refused, framework.ErrNoNode) {
		return fmt.Errorf("%w: %s", framework.ErrNodeGone, t.Node())
	}
	return refused
}
