package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// valueStore is a value's nodes, as bytes.
type valueStore struct {
	client *framework.Client
	path   string
}

// historySize is how many records are kept.
const historySize = 20

const (
	pastSuffix   = "~past" // of the directory with the records of a value
	recordPrefix = "v-"
)

func (s valueStore) pastPath() string { return s.path + pastSuffix }

func (s valueStore) recordPath(name string) string { return znode.Join(s.pastPath(), name) }

// writeValue writes the value and its record in one transaction. After a lost reply it looks for
// the record by its id. Each try writes over the version that it has read, so the servers apply at
// most one of them.
func (s valueStore) writeValue(ctx context.Context, w *pendingWrite) error {
	err := recipe.OnSession(ctx, s.client,
		func(session *framework.Session) error { return s.tryWrite(ctx, session, w) }, failure.IsTransient)
	if err != nil && w.unknown && !errors.Is(err, errConflict) && !errors.Is(err, framework.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
	}
	return err
}

func (s valueStore) tryWrite(ctx context.Context, session *framework.Session, w *pendingWrite) error {
	now, names, err := s.readLatest(ctx, session)
	if err != nil {
		return err
	}
	if w.unknown {
		applied, err := s.wasApplied(ctx, session, w, names)
		if applied || err != nil {
			return err
		}
	}
	if w.conditional && now.Zxid != w.wanted {
		return &ConflictError{Path: s.path, Version: now.Zxid, Wanted: w.wanted}
	}
	ops, err := s.writeOps(ctx, session, w, now, names)
	if err != nil {
		return err
	}
	_, err = session.Multi(ctx, ops...)
	var refused *framework.TxError
	switch {
	case errors.Is(err, framework.ErrTooLarge) && w.hasForeign && !w.omitForeign:
		w.omitForeign = true
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrOutcomeUnknown):
		if !w.unknown {
			w.unknown, w.newest = true, newestOf(names)
		}
		return err
	case !errors.As(err, &refused):
		return err
	case errors.Is(err, framework.ErrNoNode):
		if err := session.MakeDirs(ctx, s.pastPath()); err != nil {
			return err
		}
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrNodeExists):
		return recipe.ErrAgain
	}
	return err
}

// writeOps returns the transaction: the write of the value, its record, a record of the present
// value if another program wrote that, and deletions of records beyond historySize.
func (s valueStore) writeOps(ctx context.Context, session *framework.Session, w *pendingWrite, now framework.NodeValue,
	names []string) ([]framework.Op, error) {
	records := []storedRecord{{ID: w.id, By: s.client.Config().Identity, Note: w.note}}
	records[0].setData(w.data)
	w.hasForeign = false
	if now.Exists {
		recorded, err := s.isRecorded(ctx, session, now, names)
		if err != nil {
			return nil, err
		}
		if !recorded {
			foreign := storedRecord{ID: uuid.NewString(), Foreign: now.Zxid, Written: now.Stat.Mtime.UTC()}
			if w.omitForeign {
				foreign.Omitted = len(now.Data)
			} else {
				foreign.setData(now.Data)
			}
			w.hasForeign = true
			records = []storedRecord{foreign, records[0]}
		}
	}
	value := framework.CreateOp(s.path, w.data, framework.Persistent)
	if now.Exists {
		value = framework.SetOp(s.path, w.data, now.Stat.Version)
	}
	ops := []framework.Op{value}
	for _, r := range records {
		data, err := r.encode()
		if err != nil {
			return nil, err
		}
		ops = append(ops, framework.CreateOp(s.recordPath(recordPrefix), data, framework.PersistentSequential))
	}
	for _, name := range names[:max(0, len(names)+len(records)-historySize)] {
		ops = append(ops, framework.DeleteOp(s.recordPath(name), framework.AnyVersion))
	}
	return ops, nil
}

// isRecorded reports whether the newest record is that of the present value: they are of one
// transaction.
func (s valueStore) isRecorded(ctx context.Context, session *framework.Session, now framework.NodeValue,
	names []string) (bool, error) {
	if len(names) == 0 {
		return false, nil
	}
	stat, err := session.Exists(ctx, s.recordPath(newestOf(names)))
	if errors.Is(err, framework.ErrNoNode) {
		return false, recipe.ErrAgain
	}
	return stat.Czxid == now.Zxid, err
}

// wasApplied reports whether a try without a reply was applied: its record exists. If later writes
// may have deleted the record, it returns framework.ErrOutcomeUnknown.
func (s valueStore) wasApplied(ctx context.Context, session *framework.Session, w *pendingWrite,
	names []string) (bool, error) {
	for _, name := range slices.Backward(names) {
		if name <= w.newest {
			return false, nil
		}
		data, _, err := session.Get(ctx, s.recordPath(name))
		if errors.Is(err, framework.ErrNoNode) {
			return false, recipe.ErrAgain
		}
		if err != nil {
			return false, err
		}
		if r, err := decodeStored(data); err == nil && r.ID == w.id {
			return true, nil
		}
	}
	if len(names) >= historySize-1 { // later writes may have deleted the try's record
		return false, framework.ErrOutcomeUnknown
	}
	return false, nil
}

// readLatest reads the node and lists the records, oldest first, after a sync.
func (s valueStore) readLatest(ctx context.Context, session *framework.Session) (now framework.NodeValue,
	names []string, err error) {
	if err = session.Sync(ctx, s.path); err == nil {
		now, err = s.readValue(ctx, session)
	}
	if err == nil {
		names, err = s.recordNames(ctx, session)
	}
	return now, names, err
}

// readValue reads the node. For a missing node it returns a value that does not exist, and no
// error.
func (s valueStore) readValue(ctx context.Context, session *framework.Session) (framework.NodeValue, error) {
	data, stat, err := session.Get(ctx, s.path)
	if errors.Is(err, framework.ErrNoNode) {
		return framework.NodeValue{}, nil
	}
	return framework.NodeValue{Exists: true, Data: data, Stat: stat, Zxid: stat.Mzxid}, err
}

// recordNames lists the records, oldest first.
func (s valueStore) recordNames(ctx context.Context, session *framework.Session) ([]string, error) {
	names, _, err := session.Children(ctx, s.pastPath())
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, recordPrefix) })
	slices.Sort(names)
	return names, nil
}

func newestOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// readHistory reads the records, newest first.
func (s valueStore) readHistory(ctx context.Context) (records []Record, err error) {
	err = recipe.OnSession(ctx, s.client, func(session *framework.Session) error {
		now, names, err := s.readLatest(ctx, session)
		if err != nil {
			return err
		}
		records = nil
		for _, name := range slices.Backward(names) {
			data, stat, err := session.Get(ctx, s.recordPath(name))
			switch {
			case errors.Is(err, framework.ErrNoNode): // others write
				continue
			case err != nil:
				return err
			}
			records = append(records, decodeRecord(data, stat))
		}
		known := slices.ContainsFunc(records, func(r Record) bool { return r.Version == now.Zxid })
		if now.Exists && !known {
			records = slices.Insert(records, 0,
				Record{Version: now.Zxid, Written: now.Stat.Mtime.UTC(), Foreign: true, Data: now.Data})
		}
		return nil
	}, failure.IsTransient)
	return records, err
}
