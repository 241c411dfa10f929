package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// SetCapacity changes the bound of a bounded queue (WithCapacity), for everybody who uses it, now and later. Producers that wait for
// room go on at once if there is some. If there are more than n items they stay; when SetCapacity has returned nil nothing is put
// until there are fewer.
//
// An unbounded queue cannot be bounded so, since nobody has counted its items: ErrOption. Drop it, and make it anew. For a
// queue that is as good as unbounded, n may be up to 2^30. A Queue that was made with WithCapacity goes on; one that is made
// with another capacity afterwards gets ErrMismatch. Calling it again is harmless.
func (q *Queue[T]) SetCapacity(ctx context.Context, n int) error {
	err := fmt.Errorf("%w: SetCapacity: %d is not between 1 and %d", ErrOption, n, maxCapacity)
	if n > 0 && n <= maxCapacity {
		err = q.core.repeatOnSessions(ctx, func(s *framework.Session) error { return q.core.setCapacity(ctx, s, n) })
	}
	return framework.Wrap("change", q.core.path, err)
}

// SetDedup changes how long the queue remembers ids (WithDedup), for everybody who uses it, now and later. A queue that has
// remembered none so far begins to. Ids that were put before are remembered for the old time or the new one. Who only puts may hear of a
// shorter time late. Calling it again is harmless.
func (q *Queue[T]) SetDedup(ctx context.Context, window time.Duration) error {
	err := fmt.Errorf("%w: SetDedup: %v, at least 1s", ErrOption, window)
	if window >= time.Second {
		err = q.core.repeatOnSessions(ctx, func(s *framework.Session) error { return q.core.setDedup(ctx, s, window) })
	}
	return framework.Wrap("change", q.core.path, err)
}

// change writes the record as f changes it, together with f's operations. Who interferes makes it begin again.
func (q *engine) change(ctx context.Context, s *framework.Session, f func(r *queueRecord) ([]framework.Op, error)) error {
	for {
		data, st, err := s.Get(ctx, q.path)
		if err != nil {
			return err
		}
		before, err := decodeRecord(data)
		if err != nil {
			return err
		}
		after := before
		ops, err := f(&after)
		if err != nil || after == before {
			return err
		}
		if data, err = after.encode(); err != nil {
			return err
		}
		_, err = s.Multi(ctx, append(ops, framework.SetOp(q.path, data, st.Version), q.queueExistsOp())...)
		switch {
		case err == nil:
			after.version, after.born = st.Version+1, st.Czxid
			q.learn(after)
			return nil
		case !errors.Is(err, framework.ErrBadVersion):
			return err // also where the reply was lost: it is done again
		}
	}
}

// setCapacity changes <path>/in in the same transaction: whoever takes places at what it has read before is refused, and reads the
// record again. It counts one more in and one more out, which wakes the first of those that wait.
func (q *engine) setCapacity(ctx context.Context, s *framework.Session, n int) error {
	err := q.change(ctx, s, func(r *queueRecord) ([]framework.Op, error) {
		if r.Capacity == 0 {
			return nil, fmt.Errorf("%w: SetCapacity: the queue was made without a bound, and its items are not counted; drop it and make it anew with WithCapacity", ErrOption)
		}
		r.Capacity = n
		data, st, err := s.Get(ctx, q.below(inNode))
		if err != nil {
			return nil, err
		}
		in, line, err := decodeIn(data)
		if err != nil {
			return nil, framework.Wrap("read", q.below(inNode), err)
		}
		return []framework.Op{framework.SetOp(q.below(inNode), encodeIn(in+1, line), st.Version),
			framework.SetOp(q.below(outNode), nil, framework.AnyVersion)}, nil
	})
	if err != nil {
		return err
	}
	return q.takeBackPlaces(ctx, s, n)
}

// takeBackPlaces takes back the places that producers have not used, while more are given out than there may be items. Nobody gets new
// ones then, so each of them is taken back or used soon.
func (q *engine) takeBackPlaces(ctx context.Context, s *framework.Session, capacity int) error {
	for {
		var r capacityCounter
		if err := r.readState(ctx, s, q); err != nil {
			return err
		}
		if int(int32(r.in-r.out)) <= capacity {
			return nil
		}
		all, _, err := r.unusedByOthers(ctx, s, q)
		if err != nil {
			return err
		}
		left := 0
		for _, p := range all {
			if p.left == 0 {
				continue
			}
			left += p.left
			_, err := s.Multi(ctx, framework.SetOp(q.below(inNode), encodeIn(r.in-uint32(p.left), r.line), r.version), framework.DeleteOp(p.path, p.version))
			if err != nil && !refusedByOthers(err) {
				return err
			}
			break // <path>/in is another now
		}
		if left == 0 {
			return nil
		}
	}
}

// setDedup changes <path>/ids in the same transaction: whoever closes a bucket at what it has read before is refused, and reads the
// record again.
func (q *engine) setDedup(ctx context.Context, s *framework.Session, window time.Duration) error {
	return q.change(ctx, s, func(r *queueRecord) ([]framework.Op, error) {
		r.Dedup = window.Milliseconds()
		data, st, err := s.Get(ctx, q.below(idsDir))
		if errors.Is(err, framework.ErrNoNode) {
			return nil, nil // nobody has closed one so far
		}
		return []framework.Op{framework.SetOp(q.below(idsDir), data, st.Version)}, err
	})
}
