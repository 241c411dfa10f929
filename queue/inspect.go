package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Counts are the numbers of a queue's items.
type Counts struct {
	// Items are the items that can be taken, and those that consumers have.
	Items int `json:"items"`
	// Delayed are the delayed items.
	Delayed int `json:"delayed"`
	// Dead are the dead letters.
	Dead int `json:"dead"`
}

// Len returns the number of items in the queue, claimed or not, delayed ones included; dead letters
// do not count. It is exact while there are no puts and takes. It reads more nodes the longer the
// queue is, but little of each.
func (q *Queue[T]) Len(ctx context.Context) (int, error) {
	c, err := q.Counts(ctx)
	return c.Items + c.Delayed, err
}

// Counts counts the queue's items, as Len does.
func (q *Queue[T]) Counts(ctx context.Context) (Counts, error) {
	read, err := q.engine.store.readOwn(ctx, (*queuesReader).countItems)
	return read.counts, failure.Wrap("count", q.Path(), ignoreAbsent(err))
}

// Item is an item in the queue. Its fields are those of Delivery.
type Item[T any] struct {
	Value T
	// Node is the item's node.
	Node string
	// Attempts is how often the item was claimed, as far as the queue stores that: a strict queue
	// does not store an item's first claim.
	Attempts  int
	ID        string
	Kind      string
	Priority  int
	Headers   map[string]string
	Enqueued  time.Time
	LastError string
}

// Peek returns the first item without a claim. A consumer may have claimed the item. The error
// wraps ErrEmpty if there is no item, or framework.ErrBadValue if the item cannot be decoded.
func (q *Queue[T]) Peek(ctx context.Context) (item Item[T], err error) {
	var node string
	var e queuelayout.Envelope
	store := q.engine.store
	err = store.inExisting(ctx, func(s *framework.Session) (err error) {
		node, e, err = store.peekItem(ctx, s)
		return err
	})
	if errors.Is(err, errAbsent) {
		err = ErrEmpty
	}
	if err == nil {
		item.Value, err = decodeValue(q.codec, e.Payload)
		h := e.Header
		item.Node, item.Attempts, item.ID, item.Kind = node, h.Attempts, h.ID, h.Kind
		item.Priority, item.Headers = h.Priority, h.Headers
		item.Enqueued, item.LastError = h.EnqueuedAt(), h.Error
	}
	return item, failure.Wrap("peek", q.Path(), err)
}

// peekItem reads the first item, with all its known attempts in the header.
func (store *store) peekItem(ctx context.Context, s *framework.Session) (node string, e queuelayout.Envelope,
	err error) {
	chains, err := store.nodes.ListChains(ctx, s)
	if err != nil {
		return "", e, err
	}
	// once more the returned items: one may have come from a chain behind, before that was listed
	for item, err := range eachItem(ctx, s, false, append(chains, store.nodes.Redo)...) {
		if err != nil {
			return "", e, err
		}
		if e, err = queuelayout.DecodeItem(item.node.Data, item.node.Stat); err != nil {
			return "", e, fmt.Errorf("%w: %w", errCodec, err)
		}
		e.Header.Attempts += int(item.node.Stat.Version) - e.Header.Unseen
		return item.path, e, nil
	}
	return "", e, ErrEmpty
}

// Oldest returns when the oldest item was put, by the ensemble's clock. It compares the first items
// of each priority and of the returned items. The time is zero if the queue is empty. A consumer
// may have claimed the item. For an item that cannot be read, it is the time at which the item's
// node was created.
func (q *Queue[T]) Oldest(ctx context.Context) (time.Time, error) {
	read, err := q.engine.store.readOwn(ctx, (*queuesReader).countItems, (*queuesReader).readOldest)
	return read.oldest, failure.Wrap("find the oldest item", q.Path(), ignoreAbsent(err))
}

// DeadLetters yields the dead letters, the oldest first. It changes no items, but removes empty
// segments of the dead letters. An error is the last that it yields.
func (q *Queue[T]) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for item, err := range q.engine.store.deadItems(ctx) {
			if err != nil {
				yield(DeadLetter{}, failure.Wrap("list dead letters", q.Path(), err))
				return
			}
			e, err := queuelayout.DecodeEnvelope(item.node.Data)
			if err != nil {
				e = queuelayout.Envelope{Header: queuelayout.Header{Error: err.Error()}, Payload: item.node.Data}
			}
			letter := newDeadLetter(e)
			letter.Node, letter.Buried = item.path, item.node.Stat.Ctime
			if !yield(letter, nil) {
				return
			}
		}
	}
}

// Requeue puts all dead letters into the queue again, behind the items of the same priority,
// without their attempts, errors and expiry. Each is moved in one transaction. It returns the
// number of letters that it has moved. In a bounded queue without room it stops with ErrFull.
func (q *Queue[T]) Requeue(ctx context.Context) (n int, err error) {
	return q.requeueLetters(ctx, q.engine.store.deadItems(ctx))
}

// RequeueLetters is Requeue for the dead letters at the given nodes (DeadLetter.Node). It leaves
// out nodes at which there is no dead letter.
func (q *Queue[T]) RequeueLetters(ctx context.Context, nodes ...string) (n int, err error) {
	return q.requeueLetters(ctx, q.engine.store.deadItemsAt(ctx, nodes))
}

func (q *Queue[T]) requeueLetters(ctx context.Context, letters iter.Seq2[readItem, error]) (n int, err error) {
	for item, err := range letters {
		var done bool
		if err == nil {
			done, err = q.engine.requeueLetter(ctx, item)
		}
		if err != nil {
			return n, failure.Wrap("requeue", q.Path(), err)
		}
		if done {
			n++
		}
	}
	return n, nil
}

// requeueLetter moves one dead letter. It returns false if another client has done so.
func (e *engine) requeueLetter(ctx context.Context, item readItem) (bool, error) {
	data := item.node.Data
	env, err := queuelayout.DecodeItem(data, item.node.Stat)
	if err == nil && env.Header.Raw {
		data = env.Payload
	} else if err == nil {
		env.Header.Attempts, env.Header.Unseen, env.Header.Error, env.Header.TTL = 0, 0, "", 0
		if data, err = env.Encode(); err != nil {
			return false, err
		}
	}
	to, ops := putTarget(e.store.nodes, env.Header.Priority, 0)
	to.data = data
	_, err = e.writer.writeAndWait(ctx,
		&writeRequest{session: item.session, adds: 1,
			ops: append(ops, framework.DeleteOp(item.path, item.node.Stat.Version)), items: []newItem{to}})
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// readItem is an item that was read.
type readItem struct {
	session *framework.Session
	path    string
	node    framework.Node
}

// deadItems yields the dead letters in order.
func (store *store) deadItems(ctx context.Context) iter.Seq2[readItem, error] {
	return store.readDead(ctx, func(s *framework.Session) iter.Seq2[readItem, error] {
		return eachItem(ctx, s, true, store.nodes.Dead)
	})
}

// deadItemsAt yields the dead letters at the given nodes.
func (store *store) deadItemsAt(ctx context.Context, nodes []string) iter.Seq2[readItem, error] {
	return store.readDead(ctx, func(s *framework.Session) iter.Seq2[readItem, error] {
		return func(yield func(readItem, error) bool) {
			for _, node := range nodes {
				segment, name := znode.Split(node)
				chain, _ := znode.Split(segment)
				if _, isItem := queuelayout.ItemNumber(name); !isItem || chain != store.nodes.Dead.Dir {
					continue
				}
				data, stat, err := s.Get(ctx, node)
				if errors.Is(err, framework.ErrNoNode) {
					continue
				}
				if !yield(readItem{s, node, framework.Node{Data: data, Stat: stat}}, err) || err != nil {
					return
				}
			}
		}
	})
}

// readDead yields what read yields on a session, or nothing if there is no queue.
func (store *store) readDead(ctx context.Context,
	read func(*framework.Session) iter.Seq2[readItem, error]) iter.Seq2[readItem, error] {
	return func(yield func(readItem, error) bool) {
		s, err := store.sessionForReads(ctx)
		if err == nil {
			read(s)(yield)
		} else if err = ignoreAbsent(err); err != nil {
			yield(readItem{}, err)
		}
	}
}

// eachItem yields the items of chains in order. On request it removes empty segments before the
// last one of a chain.
func eachItem(ctx context.Context, s *framework.Session, removeEmpty bool,
	chains ...queuelayout.Chain) iter.Seq2[readItem, error] {
	return func(yield func(readItem, error) bool) {
		for segment, err := range queuelayout.EachSegment(ctx, s, chains...) {
			if err != nil {
				yield(readItem{}, err)
				return
			}
			if removeEmpty && len(segment.Items) == 0 && !segment.Last {
				_ = segment.RemoveIfEmpty(ctx, s) // refused if it is open or not empty
			}
			for _, k := range segment.Items {
				data, stat, err := s.Get(ctx, segment.ItemNode(k))
				if errors.Is(err, framework.ErrNoNode) {
					continue
				}
				item := readItem{s, segment.ItemNode(k), framework.Node{Data: data, Stat: stat}}
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}
