package queue

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// DeadLetter is an item that was given up: its attempts were used up, it could not be decoded, or its time was over (WithExpiry).
type DeadLetter struct {
	// Node is where it lies.
	Node string
	// ID is the producer's name of the item, or "".
	ID string
	// Attempts is how often it was claimed.
	Attempts int
	// Reason is the last error.
	Reason string
	// Data is what the codec was given, or all that was stored if that could not be read.
	Data []byte
	// Headers are what the producer has put with the item (WithHeaders), or nil.
	Headers map[string]string
	// EnqueuedAt is when the item was put, by the ensemble's clock, or zero if what was stored could not be read.
	EnqueuedAt time.Time
	// Buried is when, by the ensemble's clock.
	Buried time.Time
}

// DeadLetters yields the dead letters, the oldest first. It changes nothing.
func (q *Queue[T]) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		err := q.core.eachDead(ctx, func(_ *framework.Session, node string, data []byte, st framework.Stat) error {
			e, err := decodeEnvelope(data)
			if err != nil {
				e = envelope{header{Error: err.Error()}, data}
			}
			letter := DeadLetter{Node: node, ID: e.header.ID, Attempts: e.header.Attempts, Reason: e.header.Error, Data: e.payload,
				Headers: e.header.Headers, Buried: st.Ctime}
			if e.header.Put > 0 {
				letter.EnqueuedAt = e.header.enqueued()
			}
			if !yield(letter, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(DeadLetter{}, framework.Wrap("list dead letters", q.core.path, err))
		}
	}
}

var errStop = errors.New("stopped")

// Requeue puts dead letters at the end of the queue again, without their attempts: those at the nodes given, or all.
// It returns how many. Of a bounded queue it stops with ErrFull when there is no room.
func (q *Queue[T]) Requeue(ctx context.Context, nodes ...string) (n int, err error) {
	only := map[string]bool{}
	for _, node := range nodes {
		only[node] = true
	}
	err = q.core.eachDead(ctx, func(s *framework.Session, node string, data []byte, st framework.Stat) error {
		if len(nodes) > 0 && !only[node] {
			return nil
		}
		done, err := q.core.requeue(ctx, s, node, data, st)
		if done {
			n++
		}
		return err
	})
	return n, framework.Wrap("requeue", q.core.path, err)
}

// requeue moves one dead letter; false if somebody else has.
func (q *core) requeue(ctx context.Context, s *framework.Session, node string, data []byte, st framework.Stat) (bool, error) {
	e, err := decodeItem(data, st)
	if err == nil && e.header.Raw {
		data = e.payload
	} else if err == nil {
		e.header.Attempts, e.header.Unseen, e.header.Error, e.header.TTL = 0, 0, "", 0
		if data, err = e.encode(); err != nil {
			return false, err
		}
	}
	to, ops := q.destination(e.header.Priority, 0)
	to.data = data
	_, err = q.writer.do(ctx, &part{session: s, adds: 1, ops: append(ops, framework.DeleteOp(node, st.Version)), puts: []put{to}})
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// eachDead calls f with each dead letter in order, until it returns an error.
func (q *core) eachDead(ctx context.Context, f func(*framework.Session, string, []byte, framework.Stat) error) error {
	s, err := q.visit(ctx)
	if err != nil {
		return there(err)
	}
	segments, err := q.dead.segments(ctx, s)
	if err != nil {
		return err
	}
	for i, seg := range segments {
		items, err := q.dead.items(ctx, s, seg)
		if err != nil {
			return err
		}
		if len(items) == 0 && i < len(segments)-1 {
			_ = q.dead.remove(ctx, s, seg) // refused if it is not to be
		}
		for _, k := range items {
			node := q.dead.item(seg, k)
			data, st, err := s.Get(ctx, node)
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err == nil {
				err = f(s, node, data, st)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// session is one on which the queue was found; reads see at least what was written before the call.
func (q *core) session(ctx context.Context) (*framework.Session, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	s, err := q.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.find(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Sync(ctx, q.path)
}

// repeating calls f, whose repetition does no harm, on session after session: until one answers, or ctx ends. Where something
// of the queue is missing, it may have been dropped: then f is called again once the queue was made anew.
func (q *core) repeating(ctx context.Context, f func(*framework.Session) error) error {
	back := q.client.Retries()
	for missing := 0; ; {
		s, err := q.session(ctx)
		if err == nil {
			err = f(s)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return framework.Ended(ctx)
		case errors.Is(err, framework.ErrNoNode) && missing < mostMissing:
			missing++
			q.stale.Store(true)
		case !framework.IsTransient(err):
			return err
		}
		if err := back.Pause(ctx); err != nil {
			return err
		}
	}
}

// visit is session for who looks, and makes no queue: errAbsent.
func (q *core) visit(ctx context.Context) (*framework.Session, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	s, err := q.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Sync(ctx, q.path); err != nil || q.found.Load() != nil && !q.stale.Load() {
		return s, err
	}
	err = q.read(ctx, s)
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) || errors.Is(err, errDropped) {
		err = errAbsent
	}
	return s, err
}

var errAbsent = errors.New("there is no queue yet")

// there is the error of who has looked for something: where there is no queue yet, there is nothing of it.
func there(err error) error {
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}
