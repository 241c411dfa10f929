package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// store is the queue in ZooKeeper: its nodes, its record, and the ensemble's clock.
type store struct {
	client      *framework.Client
	nodes       *queuelayout.Layout
	clock       recipe.EnsembleClock
	checkUsable func() error // an error of the arguments, or framework.ErrClosed after Close

	given queuelayout.Record                 // by the options of this Queue
	found atomic.Pointer[queuelayout.Record] // nil until the queue was found or made
	stale atomic.Bool                        // the record has to be read again
}

var (
	errVacant   = errors.New("the node has no data and can become a queue")
	errConflict = errors.New("another client has changed the queue at the same time")
	errDropped  = errors.New("the queue is being dropped")
	errAbsent   = errors.New("the queue does not exist yet")
)

// record is the queue's record, as far as this Queue knows. The queue was found before.
func (store *store) record() queuelayout.Record { return *store.found.Load() }

// exceedsCapacity reports whether so many items are more than the queue may hold, so that their put
// would wait for room for ever.
func (store *store) exceedsCapacity(items int) bool { return items > store.record().Capacity }

// findOrMake reads the queue's record, or makes the queue. It first finishes a Drop that was
// interrupted.
func (store *store) findOrMake(ctx context.Context, s *framework.Session) error {
	if store.found.Load() != nil && !store.stale.Load() {
		return nil
	}
	for pauses := (recipe.RetryPauses{Client: store.client}); ; {
		began := time.Now()
		err := store.readRecord(ctx, s)
		if errors.Is(err, errDropped) {
			if err = store.finishDrop(ctx, s); err == nil {
				err = errConflict
			}
		}
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) {
			err = store.makeQueue(ctx, s, errors.Is(err, errVacant))
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errConflict):
			return err
		}
		if pauses.Wait(ctx, began) != nil {
			return failure.Ended(ctx)
		}
	}
}

// readRecord reads the record and compares it with the options. After the first time it compares
// only the fields that no call can change.
func (store *store) readRecord(ctx context.Context, s *framework.Session) error {
	nodes, err := s.GetAll(ctx, store.nodes.Path, store.nodes.ItemsDir)
	if err != nil {
		return err
	}
	queue, items := nodes[0], nodes[1]
	if queue.Err == nil && len(queue.Data) == 0 {
		return store.checkVacant(ctx, s, queue.Stat.NumChildren)
	}
	r, err := storedRecord(store.nodes, queue, items)
	if err != nil {
		return err
	}
	given := store.given
	if store.found.Load() != nil { // changes since this Queue began are valid for it, too
		given.Capacity, given.Dedup, given.Retry = 0, 0, nil
	}
	if err := checkOptions(r, given); err != nil {
		return err
	}
	store.learnRecord(r)
	store.stale.Store(false)
	return nil
}

// storedRecord reads the record in the queue's node. items is the directory of its items.
func storedRecord(nodes *queuelayout.Layout, queue, items framework.Node) (queuelayout.Record, error) {
	r, err := queuelayout.ReadRecord(queue)
	switch {
	case err != nil:
		return r, err
	case r.Dropped:
		return r, errDropped
	case errors.Is(items.Err, framework.ErrNoNode):
		return r, fmt.Errorf("%w: %s is missing: a part of the queue was deleted; Drop removes the rest", errNotQueue,
			nodes.ItemsDir)
	}
	return r, nil
}

// checkVacant returns errVacant if a node without data can become a queue: it has no children but
// the directories of locks. Waiters for a lock of a dropped queue make that directory again, and
// the queue's node above it.
func (store *store) checkVacant(ctx context.Context, s *framework.Session, children int32) error {
	if children == 0 {
		return errVacant
	}
	names, _, err := s.Children(ctx, store.nodes.Path)
	if err != nil {
		return err
	}
	return checkVacantChildren(names)
}

func checkVacantChildren(names []string) error {
	if queuelayout.IsVacant(names) {
		return errVacant
	}
	return fmt.Errorf("%w: it has children and no record", errNotQueue)
}

// makeQueue makes the queue in one transaction, in place of an empty node if there is one.
func (store *store) makeQueue(ctx context.Context, s *framework.Session, vacant bool) error {
	r := store.given
	if known := store.found.Load(); known != nil { // the queue was dropped; its record agreed with the options
		r = *known
	}
	r.Czxid = 0
	if r.Order == "" {
		r.Order = queuelayout.Parallel
	}
	data, err := r.Encode()
	if err != nil {
		return err
	}
	var ops []framework.Op
	if vacant {
		present, stat, err := s.Get(ctx, store.nodes.Path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && len(present) > 0 {
			return errConflict
		}
		if err != nil {
			return err
		}
		ops = append(ops, framework.SetOp(store.nodes.Path, data, stat.Version))
		r.Version = stat.Version + 1
	} else {
		above, _ := znode.Split(store.nodes.Path)
		if err := s.MakeDirs(ctx, above); err != nil {
			return err
		}
		ops = append(ops, framework.CreateOp(store.nodes.Path, data, framework.Persistent))
		r.Version = 0
	}
	_, err = s.Multi(ctx, append(ops, store.nodes.MakeOps(r.Capacity > 0)...)...)
	switch {
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSuspended):
		return errConflict
	case err == nil:
		store.found.Store(&r)
		store.stale.Store(false)
	}
	return err
}

// learnRecord stores a record that was read, unless a later one of the same queue is known.
func (store *store) learnRecord(r queuelayout.Record) {
	for {
		known := store.found.Load()
		if known != nil && known.Czxid == r.Czxid && known.Version > r.Version ||
			store.found.CompareAndSwap(known, &r) {
			return
		}
	}
}

// learnFrom learns the record from its node.
func (store *store) learnFrom(n framework.Node) error {
	r, err := queuelayout.ReadRecord(n)
	if err == nil && !r.Dropped { // else no put succeeds any more
		store.learnRecord(r)
	}
	return err
}

// watchRecord follows the record until ctx ends. It returns an error when the queue was dropped, or
// dropped and made anew.
func (store *store) watchRecord(ctx context.Context, s *framework.Session) error {
	for {
		_, _, changed, err := s.WatchData(ctx, store.nodes.Path)
		if err == nil {
			err = store.readRecord(ctx, s)
		}
		if err != nil {
			if changed != nil {
				changed.Stop()
			}
			store.stale.Store(true)
			return err
		}
		if err := waitForWatch(ctx, changed); err != nil {
			return err
		}
	}
}

// wasReplaced reports whether the queue is another one than that whose node the transaction created
// has made. It finds or makes the queue.
func (store *store) wasReplaced(ctx context.Context, s *framework.Session, created int64) (bool, error) {
	store.stale.Store(true)
	if err := store.findOrMake(ctx, s); err != nil {
		return false, err
	}
	now := store.record().Czxid // 0 if findOrMake has just made the queue
	return now == 0 || now != created, nil
}

// countLeaving returns the operation that counts one item that leaves a bounded queue. An unbounded
// queue counts no items.
func (store *store) countLeaving() []framework.Op {
	if store.record().Capacity == 0 {
		return nil
	}
	return []framework.Op{framework.SetOp(store.nodes.OutNode, nil, framework.AnyVersion)}
}

// retryDelay is how long an item waits after a failed attempt, by the queue's retry policy.
func (store *store) retryDelay(attempt int) time.Duration {
	retry := store.record().Retry
	if retry == nil {
		return 0
	}
	return retry.DelayAfter(attempt, rand.Float64())
}

// sessionForReads returns a session for read-only calls of a queue that exists, or errAbsent. Reads
// see all that was written before the call.
func (store *store) sessionForReads(ctx context.Context) (*framework.Session, error) {
	if err := store.checkUsable(); err != nil {
		return nil, err
	}
	s, err := store.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Sync(ctx, store.nodes.Path); err != nil || store.found.Load() != nil && !store.stale.Load() {
		return s, err
	}
	return s, store.readExisting(ctx, s)
}

// readExisting reads the record, or returns errAbsent.
func (store *store) readExisting(ctx context.Context, s *framework.Session) error {
	err := store.readRecord(ctx, s)
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) || errors.Is(err, errDropped) {
		return errAbsent
	}
	return err
}

// inExisting calls f, which may be repeated, with a session for reads. It returns errAbsent if
// there is no queue. If f misses a node, another client may have dropped the queue that this Queue
// knows: then inExisting looks for it, and calls f once more if there is one.
func (store *store) inExisting(ctx context.Context, f func(*framework.Session) error) error {
	s, err := store.sessionForReads(ctx)
	if err != nil {
		return err
	}
	if err = f(s); !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if err := store.readExisting(ctx, s); err != nil {
		return err
	}
	return f(s)
}

// ignoreAbsent returns no error for a read-only call of a queue that does not exist yet.
func ignoreAbsent(err error) error {
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}

// maxMissingRetries is how often a missing node makes a call look for the queue again.
const maxMissingRetries = 10

// repeatOnSessions calls f, which may be repeated, on session after session until it has an answer,
// or ctx ends. If a node is missing, the queue may have been dropped: then f runs again after the
// queue was made anew.
func (store *store) repeatOnSessions(ctx context.Context, f func(*framework.Session) error) error {
	if err := store.checkUsable(); err != nil {
		return err
	}
	missing := 0
	return recipe.OnSession(ctx, store.client, func(s *framework.Session) error {
		err := store.checkUsable()
		if err == nil {
			err = store.findOrMake(ctx, s)
		}
		if err == nil {
			err = s.Sync(ctx, store.nodes.Path)
		}
		if err == nil {
			err = f(s)
		}
		if missing++; errors.Is(err, framework.ErrNoNode) && missing <= maxMissingRetries {
			store.stale.Store(true)
			return recipe.ErrAgain
		}
		return err
	}, failure.IsTransient)
}

// waitForWatch waits until a watch fires or ctx ends, and stops the watch.
func waitForWatch(ctx context.Context, w *framework.Watch) error {
	defer w.Stop()
	select {
	case <-w.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
