package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// record is what is stored in the queue's node. Its capacity and its window may be changed (change.go), the rest stays.
type record struct {
	V        int    `json:"v"`
	Recipe   string `json:"recipe"`
	Order    Order  `json:"order"`
	Capacity int    `json:"capacity,omitempty"`
	// Dedup is how long ids are remembered, in milliseconds.
	Dedup int64 `json:"dedup,omitempty"`
	// Retry is how long items wait that were given back, or nil.
	Retry *storedRetry `json:"retry,omitempty"`
	// Dropped says that the queue is being removed.
	Dropped bool `json:"dropped,omitempty"`

	version int32 // the node's
	born    int64 // the transaction that has created the node, or 0 if it was made here and not read since
}

const (
	recordVersion = 2
	recipe        = "queue"
)

// decodeRecord is the one reader of queues' records. Its errors wrap ErrNotQueue or ErrNewer.
func decodeRecord(data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil || r.Recipe != recipe {
		return r, fmt.Errorf("%w: it holds %.40q", ErrNotQueue, data)
	}
	if r.V > recordVersion {
		return r, fmt.Errorf("%w: record of version %d, this release reads %d", ErrNewer, r.V, recordVersion)
	}
	if r.V >= 0 && r.V < recordVersion {
		return r, fmt.Errorf("%w: record of version %d, a layout from before the first release; this one reads %d: drain the queue with the program that made it, or delete it",
			ErrNotQueue, r.V, recordVersion)
	}
	if r.V < 0 || !r.Order.known() || r.Capacity < 0 || r.Dedup < 0 || r.Retry != nil && !r.Retry.usable() {
		return r, fmt.Errorf("%w: its record cannot be read: %.80q", ErrNotQueue, data)
	}
	return r, nil
}

func (r record) encode() ([]byte, error) { return json.Marshal(r) }

// agrees tells whether the stored record is what this Queue was made with. What was not given is as it is stored.
func (r record) agrees(given record) error {
	switch {
	case given.Order != "" && r.Order != given.Order:
		return &MismatchError{"order", string(r.Order), string(given.Order)}
	case given.Capacity != 0 && r.Capacity != given.Capacity:
		return &MismatchError{mismatchCapacity, orNone(r.Capacity != 0, r.Capacity), orNone(true, given.Capacity)}
	case given.Dedup != 0 && r.Dedup != given.Dedup:
		return &MismatchError{mismatchDedup, orNone(r.Dedup != 0, r.window()), orNone(true, given.window())}
	case given.Retry != nil && (r.Retry == nil || *r.Retry != *given.Retry):
		return &MismatchError{"retry policy", orNone(r.Retry != nil, r.Retry), orNone(true, given.Retry)}
	}
	return nil
}

func (r record) window() time.Duration { return time.Duration(r.Dedup) * time.Millisecond }

func orNone(given bool, value any) string {
	if !given {
		return "none"
	}
	return fmt.Sprint(value)
}

// present is the operation that goes with each creation of a node below the queue's: it refuses the transaction when the queue
// was dropped. Those who wait for a lock of such a queue have made its node again, without a record.
func (q *core) present() framework.Op {
	return framework.CheckOp(q.below(itemsDir), framework.AnyVersion)
}

// find reads the queue's record, or makes the queue.
func (q *core) find(ctx context.Context, s *framework.Session) error {
	if q.found.Load() != nil && !q.stale.Load() {
		return nil
	}
	for {
		err := q.read(ctx, s)
		if errors.Is(err, errDropped) {
			if err = q.finishDrop(ctx, s); err == nil {
				err = errAgain
			}
		}
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) {
			err = q.make(ctx, s, errors.Is(err, errVacant))
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errAgain):
			return err
		}
	}
}

var (
	errVacant  = errors.New("a node without data that can become a queue")
	errAgain   = errors.New("somebody else was faster")
	errDropped = errors.New("the queue is being dropped")
)

// read reads the record. The first time it compares it with what this Queue was made with, later only what cannot be changed.
func (q *core) read(ctx context.Context, s *framework.Session) error {
	nodes, err := s.GetAll(ctx, q.path, q.below(itemsDir))
	if err != nil {
		return err
	}
	data, st, items := nodes[0].Data, nodes[0].Stat, nodes[1]
	if nodes[0].Err != nil {
		return nodes[0].Err
	}
	if len(data) == 0 {
		return q.readVacant(ctx, s, st.NumChildren)
	}
	r, err := decodeRecord(data)
	if err != nil {
		return err
	}
	if r.Dropped {
		return errDropped
	}
	if errors.Is(items.Err, framework.ErrNoNode) {
		return fmt.Errorf("%w: %s is missing: somebody has deleted a part of the queue; Drop removes the rest", ErrNotQueue, q.below(itemsDir))
	}
	given := q.record
	if q.found.Load() != nil { // what was changed since this Queue has begun counts for it, too
		given.Capacity, given.Dedup = 0, 0
	}
	if err := r.agrees(given); err != nil {
		return err
	}
	r.version, r.born = st.Version, st.Czxid
	q.learn(r)
	q.stale.Store(false)
	return nil
}

// learn takes in a record that was read, unless a later one of the same queue was.
func (q *core) learn(r record) {
	for {
		known := q.found.Load()
		if known != nil && known.born == r.born && known.version > r.version || q.found.CompareAndSwap(known, &r) {
			return
		}
	}
}

// learnFrom learns the record from its node.
func (q *core) learnFrom(n framework.Node) error {
	if n.Err != nil {
		return n.Err
	}
	r, err := decodeRecord(n.Data)
	if err != nil {
		return err
	}
	if r.version, r.born = n.Stat.Version, n.Stat.Czxid; !r.Dropped { // else nothing is put any more
		q.learn(r)
	}
	return nil
}

// readVacant is errVacant if the node, which has no data, can become a queue: nothing is below it but the directories of
// locks. Those who wait for a lock of a queue that is dropped make its directory again, and the queue's node above it.
func (q *core) readVacant(ctx context.Context, s *framework.Session, children int32) error {
	if children == 0 {
		return errVacant
	}
	names, _, err := s.Children(ctx, q.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockDir && name != roomDir {
			return fmt.Errorf("%w: it has children and no record", ErrNotQueue)
		}
	}
	return errVacant
}

// stored is the queue's record; the queue was found before.
func (q *core) stored() record { return *q.found.Load() }

// make makes the queue in one transaction, in place of an empty node if there is one.
func (q *core) make(ctx context.Context, s *framework.Session, vacant bool) error {
	r := q.record
	if known := q.found.Load(); known != nil { // it was dropped: it agrees with what was given
		r = *known
	}
	r.born = 0
	if r.Order == "" {
		r.Order = Parallel
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	var ops []framework.Op
	if vacant {
		ops = append(ops, framework.SetOp(q.path, data, 0))
		r.version = 1
	} else {
		above, _ := framework.Split(q.path)
		if err := s.MakeDirs(ctx, above); err != nil {
			return err
		}
		ops = append(ops, framework.CreateOp(q.path, data, framework.Persistent))
		r.version = 0
	}
	for _, dir := range []string{itemsDir, ticketsDir, lanesDir, laterDir} {
		ops = append(ops, framework.CreateOp(q.below(dir), nil, framework.Persistent))
	}
	if r.Capacity > 0 {
		ops = append(ops, framework.CreateOp(q.below(inNode), encodeIn(0, false), framework.Persistent),
			framework.CreateOp(q.below(outNode), nil, framework.Persistent),
			framework.CreateOp(q.below(placesDir), nil, framework.Persistent))
	}
	ops = append(ops, framework.CreateOp(q.base.tickets, nil, framework.Persistent))
	ops = append(ops, q.base.open(0)...)
	_, err = s.Multi(ctx, ops...)
	switch {
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSuspended):
		return errAgain
	case err == nil:
		q.found.Store(&r)
		q.stale.Store(false)
	}
	return err
}
