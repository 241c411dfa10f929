package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// SetCapacity changes the capacity of a bounded queue (WithCapacity) for all its users, now and
// later. Producers that wait for room continue at once if there is some. If the queue has more than
// n items, they stay; after SetCapacity has returned nil, no put succeeds until there are fewer. A
// put of more than n items that waits for room then fails with ErrFull.
//
// An unbounded queue does not count its items, so SetCapacity refuses it with framework.ErrInvalid:
// drop the queue, and make it anew. n may be up to 2^30, for a queue that is practically unbounded.
// A Queue that was made with WithCapacity before continues with the new capacity. One that is made
// with another capacity afterwards gets framework.ErrMismatch. Calling SetCapacity again is
// harmless.
func (q *Queue[T]) SetCapacity(ctx context.Context, n int) error {
	err := fmt.Errorf("%w: SetCapacity: %d is not between 1 and %d", errOption, n, maxCapacity)
	if n > 0 && n <= maxCapacity {
		store := q.engine.store
		err = store.repeatOnSessions(ctx, func(s *framework.Session) error { return store.setCapacity(ctx, s, n) })
	}
	return failure.Wrap("change", q.Path(), err)
}

// SetDedup changes how long the queue remembers ids (WithDedup), for all its users, now and later.
// A queue that has not remembered ids so far begins to. Earlier ids are remembered for the old time
// or the new one. A Queue that only puts may learn of a shorter time late. Calling SetDedup again
// is harmless.
func (q *Queue[T]) SetDedup(ctx context.Context, window time.Duration) error {
	err := fmt.Errorf("%w: SetDedup: %v, at least 1s", errOption, window)
	if window >= time.Second {
		store := q.engine.store
		err = store.repeatOnSessions(ctx, func(s *framework.Session) error { return store.setDedup(ctx, s, window) })
	}
	return failure.Wrap("change", q.Path(), err)
}

// SetRetry changes how long items wait after a failed attempt (WithRetry), for all users of the
// queue, now and later; the zero RetryPolicy removes the stored one. Items that wait already keep
// their time. A consumer may go by the former policy until it has learnt of the new one, a moment
// after SetRetry has returned. A Queue that is made with another policy afterwards gets
// framework.ErrMismatch. Calling SetRetry again is harmless.
func (q *Queue[T]) SetRetry(ctx context.Context, p RetryPolicy) error {
	remove := p == RetryPolicy{}
	p, err := p.withDefaults()
	if err == nil || remove {
		store := q.engine.store
		err = store.repeatOnSessions(ctx, func(s *framework.Session) error {
			return store.changeRecord(ctx, s, func(r *queuelayout.Record) ([]framework.Op, error) {
				switch {
				case remove:
					r.Retry = nil
				case r.Retry == nil:
					r.Retry = p.stored(queuelayout.StoredRetry{})
				default:
					r.Retry = p.stored(*r.Retry)
				}
				return nil, nil
			})
		})
	}
	return failure.Wrap("change", q.Path(), err)
}

// Drop removes the queue: its items, delayed and claimed ones too, its dead letters, its ids and
// its record. Dropping a queue that does not exist is no error. If Drop returns an error, the next
// user of the queue finishes the removal.
//
// The next use of the path makes the queue anew, by its options and else as it was known; a waiting
// Take does so, too. To change what is stored with the queue, close all that use it first, or see
// SetCapacity, SetDedup and SetRetry. Calls in progress may end with framework.ErrOutcomeUnknown.
func (q *Queue[T]) Drop(ctx context.Context) error {
	err := q.engine.checkUsable()
	if err == nil {
		err = q.engine.store.dropQueue(ctx)
	}
	return failure.Wrap("drop", q.Path(), err)
}

// Pause keeps all consumers from handing out items until Resume, prefetched ones too. Open
// deliveries continue, and so do puts. A consumer may hand out items until it has learnt of the
// pause, a moment after Pause has returned. Pausing again is harmless. After a lost reply Pause
// pauses again, also if another client has resumed the queue meanwhile.
func (q *Queue[T]) Pause(ctx context.Context) error {
	store := q.engine.store
	err := store.repeatOnSessions(ctx, func(s *framework.Session) error {
		_, err := s.Multi(ctx, store.nodes.CheckExists(),
			framework.CreateOp(store.nodes.PausedNode, nil, framework.Persistent))
		if errors.Is(err, framework.ErrNodeExists) {
			return nil
		}
		return err
	})
	return failure.Wrap("pause", q.Path(), err)
}

// Resume ends a pause. Consumers learn of it a moment later. A queue that is not paused stays as it
// is. After a lost reply Resume resumes again, also if another client has paused the queue
// meanwhile.
func (q *Queue[T]) Resume(ctx context.Context) error {
	store := q.engine.store
	err := store.repeatOnSessions(ctx,
		func(s *framework.Session) error { return s.DeleteIfPresent(ctx, store.nodes.PausedNode) })
	return failure.Wrap("resume", q.Path(), err)
}

// Paused reports whether the queue is paused, behind a sync. It returns false for a queue that does
// not exist, and does not create it.
func (q *Queue[T]) Paused(ctx context.Context) (bool, error) {
	s, err := q.engine.store.sessionForReads(ctx)
	if err == nil {
		_, err = s.Exists(ctx, q.engine.store.nodes.PausedNode)
	}
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errAbsent) {
		return false, nil
	}
	return err == nil, failure.Wrap("look", q.Path(), err)
}

// changeRecord writes the record as change changes it, together with the operations that change
// returns. After a conflict with another client it starts again.
func (store *store) changeRecord(ctx context.Context, s *framework.Session,
	change func(r *queuelayout.Record) ([]framework.Op, error)) error {
	for {
		data, stat, err := s.Get(ctx, store.nodes.Path)
		if err != nil {
			return err
		}
		before, err := queuelayout.DecodeRecord(data)
		if err != nil {
			return err
		}
		if before.Dropped { // the caller finishes the removal first
			store.stale.Store(true)
			return recipe.ErrAgain
		}
		after := before
		ops, err := change(&after)
		if err != nil || after.Capacity == before.Capacity && after.Dedup == before.Dedup &&
			sameRetry(after.Retry, before.Retry) {
			return err
		}
		if data, err = after.Encode(); err != nil {
			return err
		}
		_, err = s.Multi(ctx, append(ops, framework.SetOp(store.nodes.Path, data, stat.Version),
			store.nodes.CheckExists())...)
		switch {
		case err == nil:
			after.Version, after.Czxid = stat.Version+1, stat.Czxid
			store.learnRecord(after)
			return nil
		case !errors.Is(err, framework.ErrBadVersion):
			return err // after a lost reply the caller repeats it
		}
	}
}

// setCapacity writes <path>/in in the same transaction: the servers refuse a producer that reserves
// places by what it has read before, and it reads the record again. setCapacity counts one place
// more in and one more out, which wakes the first producer in line.
func (store *store) setCapacity(ctx context.Context, s *framework.Session, n int) error {
	err := store.changeRecord(ctx, s, func(r *queuelayout.Record) ([]framework.Op, error) {
		if r.Capacity == 0 {
			return nil, fmt.Errorf("%w: SetCapacity: the queue was made without a bound, and its items are not "+
				"counted; drop it and make it anew with WithCapacity", errOption)
		}
		r.Capacity = n
		data, stat, err := s.Get(ctx, store.nodes.InNode)
		if err != nil {
			return nil, err
		}
		in, line, err := queuelayout.DecodeIn(data)
		if err != nil {
			return nil, failure.Wrap("read", store.nodes.InNode, err)
		}
		return []framework.Op{framework.SetOp(store.nodes.InNode, queuelayout.EncodeIn(in+1, line), stat.Version),
			framework.SetOp(store.nodes.OutNode, nil, framework.AnyVersion)}, nil
	})
	if err != nil {
		return err
	}
	return store.takeBackPlaces(ctx, s, n)
}

// takeBackPlaces takes back unused places of producers while more places are given out than the
// capacity. Producers get no new places then, so each of them is soon taken back or used.
func (store *store) takeBackPlaces(ctx context.Context, s *framework.Session, capacity int) error {
	for {
		c := capacityCounter{store: store}
		if err := c.readState(ctx, s); err != nil {
			return err
		}
		if int(int32(c.in-c.out)) <= capacity {
			return nil
		}
		all, _, err := c.unusedByOthers(ctx, s)
		if err != nil {
			return err
		}
		left := 0
		for _, p := range all {
			if p.left == 0 {
				continue
			}
			left += p.left
			_, err := s.Multi(ctx, framework.SetOp(store.nodes.InNode,
				queuelayout.EncodeIn(c.in-uint32(p.left), c.lineMarked), c.version),
				framework.DeleteOp(p.path, p.version))
			if err != nil && !recipe.IsConflict(err) {
				return err
			}
			break // <path>/in has changed
		}
		if left == 0 {
			return nil
		}
	}
}

// setDedup writes <path>/ids in the same transaction: the servers refuse a producer that closes a
// bucket by what it has read before, and it reads the record again.
func (store *store) setDedup(ctx context.Context, s *framework.Session, window time.Duration) error {
	return store.changeRecord(ctx, s, func(r *queuelayout.Record) ([]framework.Op, error) {
		r.Dedup = window.Milliseconds()
		data, stat, err := s.Get(ctx, store.nodes.IDsDir)
		if errors.Is(err, framework.ErrNoNode) {
			return nil, nil // no bucket was closed so far
		}
		return []framework.Op{framework.SetOp(store.nodes.IDsDir, data, stat.Version)}, err
	})
}
