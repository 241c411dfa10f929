package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Counts are the numbers of a queue's items.
type Counts struct {
	// Items are those that are to be taken, and those that are being worked on.
	Items int `json:"items"`
	// Later are those that are kept back for a time.
	Delayed int `json:"later"`
	// Dead are the dead letters.
	Dead int `json:"dead"`
}

// Len returns the number of items that are in the queue, claimed or not, and for later; dead letters do not count. It
// is exact while nobody puts or takes, and reads a number of nodes that grows with the queue, but little of each.
func (q *Queue[T]) Len(ctx context.Context) (int, error) {
	c, err := q.Counts(ctx)
	return c.Items + c.Delayed, err
}

// Counts counts the queue's items, as Len does.
func (q *Queue[T]) Counts(ctx context.Context) (c Counts, err error) {
	s, err := q.core.lookSession(ctx)
	if err == nil {
		c, err = q.core.count(ctx, s)
	}
	return c, framework.Wrap("count", q.core.path, ignoreAbsent(err))
}

func (q *engine) count(ctx context.Context, s *framework.Session) (c Counts, err error) {
	lanes, err := q.listLanes(ctx, s)
	if err != nil {
		return c, err
	}
	for _, l := range append(lanes, q.base) {
		n, err := l.count(ctx, s)
		if err != nil {
			return c, err
		}
		c.Items += n
	}
	if c.Dead, err = q.dead.count(ctx, s); err != nil {
		return c, err
	}
	c.Delayed, err = q.countLater(ctx, s)
	return c, err
}

// count adds up the children of a line's segments.
func (l itemLine) count(ctx context.Context, s *framework.Session) (n int, err error) {
	segments, err := l.segments(ctx, s)
	if err != nil {
		return 0, err
	}
	var dirs []string
	for _, seg := range segments {
		dirs = append(dirs, l.segment(seg))
	}
	return countIn(ctx, s, dirs)
}

// countIn adds up the children of directories, of many in one request. Those that are gone have none.
func countIn(ctx context.Context, s *framework.Session, dirs []string) (n int, err error) {
	for some := range slices.Chunk(dirs, 500) {
		nodes, err := s.GetAll(ctx, some...)
		if err != nil {
			return n, err
		}
		for _, node := range nodes {
			if node.Err != nil && !errors.Is(node.Err, framework.ErrNoNode) {
				return n, node.Err
			}
			n += int(node.Stat.NumChildren)
		}
	}
	return n, nil
}

func (q *engine) countLater(ctx context.Context, s *framework.Session) (n int, err error) {
	hours, err := numbersIn(ctx, s, q.below(laterDir), "")
	if err != nil {
		return 0, err
	}
	var dirs []string
	for _, hour := range hours {
		seconds, err := numbersIn(ctx, s, framework.Join(q.below(laterDir), number(hour)), "")
		if err != nil {
			return n, err
		}
		for _, t := range seconds {
			dirs = append(dirs, q.secondDir(t))
		}
	}
	return countIn(ctx, s, dirs)
}

// Item is an item as it lies in the queue. Its fields are those of Delivery.
type Item[T any] struct {
	Value T
	// Node is where it lies.
	Node string
	// Attempts is how often it was claimed, as far as that is stored: in a strict queue the first claim is not.
	Attempts   int
	ID         string
	Priority   int
	Headers    map[string]string
	EnqueuedAt time.Time
	LastError  string
}

// Peek returns the first item without claiming it; somebody may have it. The error wraps ErrEmpty if there is none, or
// ErrCodec if it cannot be decoded.
func (q *Queue[T]) Peek(ctx context.Context) (value T, err error) {
	item, err := q.PeekItem(ctx)
	return item.Value, err
}

// PeekItem is Peek, and returns all that is known of the item.
func (q *Queue[T]) PeekItem(ctx context.Context) (item Item[T], err error) {
	node, e, err := q.core.peek(ctx)
	if err == nil {
		item.Value, err = decode(q.codec, e.payload)
		h := e.header
		item.Node, item.Attempts, item.ID, item.Priority, item.Headers = node, h.Attempts, h.ID, h.Priority, h.Headers
		item.EnqueuedAt, item.LastError = h.enqueued(), h.Error
	}
	return item, framework.Wrap("peek", q.core.path, err)
}

// peek reads the first item. Its header's attempts are all that are known.
func (q *engine) peek(ctx context.Context) (node string, e envelope, err error) {
	s, err := q.lookSession(ctx)
	if errors.Is(err, errAbsent) {
		return "", e, ErrEmpty
	}
	if err != nil {
		return "", e, err
	}
	lanes, err := q.listLanes(ctx, s)
	if err != nil {
		return "", e, err
	}
	for _, l := range append(lanes, q.base) {
		node, data, st, err := l.first(ctx, s)
		if err != nil {
			return "", e, err
		}
		if node == "" {
			continue
		}
		if e, err = decodeItem(data, st); err != nil {
			return "", e, fmt.Errorf("%w: %w", ErrCodec, err)
		}
		e.header.Attempts += int(st.Version) - e.header.Unseen
		return node, e, nil
	}
	return "", e, ErrEmpty
}

// first reads a line's first item; its node is "" if there is none.
func (l itemLine) first(ctx context.Context, s *framework.Session) (node string, data []byte, st framework.Stat, err error) {
	segments, err := l.segments(ctx, s)
	if err != nil {
		return "", nil, st, err
	}
	for _, seg := range segments {
		items, err := l.items(ctx, s, seg)
		if err != nil {
			return "", nil, st, err
		}
		for _, k := range items {
			node = l.item(seg, k)
			if data, st, err = s.Get(ctx, node); !errors.Is(err, framework.ErrNoNode) {
				return node, data, st, err
			}
		}
	}
	return "", nil, st, nil
}

// Pause keeps all consumers from handing out items until Resume, also those claimed ahead. What was handed out goes on,
// puts too. A consumer hears of it a moment later. Pausing again is harmless.
func (q *Queue[T]) Pause(ctx context.Context) error {
	err := q.core.repeatOnSessions(ctx, func(s *framework.Session) error {
		_, err := s.Multi(ctx, q.core.queueExistsOp(), framework.CreateOp(q.core.below(pausedNode), nil, framework.Persistent))
		if errors.Is(err, framework.ErrNodeExists) {
			return nil
		}
		return err
	})
	return framework.Wrap("pause", q.core.path, err)
}

// Resume ends a pause.
func (q *Queue[T]) Resume(ctx context.Context) error {
	err := q.core.repeatOnSessions(ctx, func(s *framework.Session) error { return s.DeleteIfPresent(ctx, q.core.below(pausedNode)) })
	return framework.Wrap("resume", q.core.path, err)
}

// Paused reports whether the queue is paused.
func (q *Queue[T]) Paused(ctx context.Context) (bool, error) {
	s, err := q.core.foundSession(ctx)
	if err == nil {
		_, err = s.Exists(ctx, q.core.below(pausedNode))
	}
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, framework.Wrap("look", q.core.path, err)
}

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
				e = envelope{itemHeader{Error: err.Error()}, data}
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
func (q *engine) requeue(ctx context.Context, s *framework.Session, node string, data []byte, st framework.Stat) (bool, error) {
	e, err := decodeItem(data, st)
	if err == nil && e.header.Raw {
		data = e.payload
	} else if err == nil {
		e.header.Attempts, e.header.Unseen, e.header.Error, e.header.TTL = 0, 0, "", 0
		if data, err = e.encode(); err != nil {
			return false, err
		}
	}
	to, ops := q.putTarget(e.header.Priority, 0)
	to.data = data
	_, err = q.writer.do(ctx, &writeRequest{session: s, adds: 1, ops: append(ops, framework.DeleteOp(node, st.Version)), puts: []itemPut{to}})
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// eachDead calls f with each dead letter in order, until it returns an error.
func (q *engine) eachDead(ctx context.Context, f func(*framework.Session, string, []byte, framework.Stat) error) error {
	s, err := q.lookSession(ctx)
	if err != nil {
		return ignoreAbsent(err)
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
			_ = q.dead.removeSegment(ctx, s, seg) // refused if it is not to be
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

// foundSession is one on which the queue was found; reads see at least what was written before the call.
func (q *engine) foundSession(ctx context.Context) (*framework.Session, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	s, err := q.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.findOrMake(ctx, s); err != nil {
		return nil, err
	}
	return s, s.Sync(ctx, q.path)
}

// repeatOnSessions calls f, whose repetition does no harm, on session after session: until one answers, or ctx ends. Where something
// of the queue is missing, it may have been dropped: then f is called again once the queue was made anew.
func (q *engine) repeatOnSessions(ctx context.Context, f func(*framework.Session) error) error {
	back := q.client.Backoff()
	for missing := 0; ; {
		s, err := q.foundSession(ctx)
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

// lookSession is session for who looks, and makes no queue: errAbsent.
func (q *engine) lookSession(ctx context.Context) (*framework.Session, error) {
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
	err = q.readRecord(ctx, s)
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, errVacant) || errors.Is(err, errDropped) {
		err = errAbsent
	}
	return s, err
}

var errAbsent = errors.New("there is no queue yet")

// ignoreAbsent is the error of who has looked for something: where there is no queue yet, there is nothing of it.
func ignoreAbsent(err error) error {
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}
