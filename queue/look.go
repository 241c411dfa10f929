package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Counts are the numbers of a queue's items.
type Counts struct {
	// Items are those that are to be taken, and those that are being worked on.
	Items int `json:"items"`
	// Later are those that are kept back for a time.
	Later int `json:"later"`
	// Dead are the dead letters.
	Dead int `json:"dead"`
}

// Len returns the number of items that are in the queue, claimed or not, and for later; dead letters do not count. It
// is exact while nobody puts or takes, and reads a number of nodes that grows with the queue, but little of each.
func (q *Queue[T]) Len(ctx context.Context) (int, error) {
	c, err := q.Counts(ctx)
	return c.Items + c.Later, err
}

// Counts counts the queue's items, as Len does.
func (q *Queue[T]) Counts(ctx context.Context) (c Counts, err error) {
	s, err := q.core.visit(ctx)
	if err == nil {
		c, err = q.core.count(ctx, s)
	}
	return c, framework.Wrap("count", q.core.path, there(err))
}

func (q *core) count(ctx context.Context, s *framework.Session) (c Counts, err error) {
	lanes, err := q.lanes(ctx, s)
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
	c.Later, err = q.countLater(ctx, s)
	return c, err
}

// count adds up the children of a line's segments.
func (l line) count(ctx context.Context, s *framework.Session) (n int, err error) {
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

func (q *core) countLater(ctx context.Context, s *framework.Session) (n int, err error) {
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
			dirs = append(dirs, q.second(t))
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
func (q *core) peek(ctx context.Context) (node string, e envelope, err error) {
	s, err := q.visit(ctx)
	if errors.Is(err, errAbsent) {
		return "", e, ErrEmpty
	}
	if err != nil {
		return "", e, err
	}
	lanes, err := q.lanes(ctx, s)
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
func (l line) first(ctx context.Context, s *framework.Session) (node string, data []byte, st framework.Stat, err error) {
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
	err := q.core.repeating(ctx, func(s *framework.Session) error {
		_, err := s.Multi(ctx, q.core.present(), framework.CreateOp(q.core.below(pausedNode), nil, framework.Persistent))
		if errors.Is(err, framework.ErrNodeExists) {
			return nil
		}
		return err
	})
	return framework.Wrap("pause", q.core.path, err)
}

// Resume ends a pause.
func (q *Queue[T]) Resume(ctx context.Context) error {
	err := q.core.repeating(ctx, func(s *framework.Session) error { return s.DeleteIfPresent(ctx, q.core.below(pausedNode)) })
	return framework.Wrap("resume", q.core.path, err)
}

// Paused tells whether the queue is paused.
func (q *Queue[T]) Paused(ctx context.Context) (bool, error) {
	s, err := q.core.session(ctx)
	if err == nil {
		_, err = s.Exists(ctx, q.core.below(pausedNode))
	}
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, framework.Wrap("look", q.core.path, err)
}
