package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Delivery is an item that this process has claimed. It has to be settled, once, by Ack or Nack.
//
// Guarantee: while Context stands nobody else has the item, as long as this process is scheduled (see package
// framework). It ends when the delivery is settled, and when it is lost, with the session or the queue's lock. The item
// then comes to another consumer, or this one, with a higher Attempt.
type Delivery[T any] struct {
	// Value is what was put.
	Value T
	// Attempt counts from 1 how often the item was claimed. A consumer that died between a claim and its hand-out
	// counts too, and so may, in a parallel queue, a Take that ended in vain just before the item was put.
	Attempt int
	// ID is the producer's name of the item (WithID), or "".
	ID string
	// Priority is what the item was put with (WithPriority).
	Priority int
	// Headers are what the producer has put with the item (WithHeaders), or nil.
	Headers map[string]string
	// EnqueuedAt is when the item was put, by the clock of the ensemble's leader, in milliseconds. It stays as it is when the
	// item is delayed, given back, buried or requeued.
	EnqueuedAt time.Time
	// LastError is the reason that the item was given back with last (Nack), or "". A strict queue does not keep it.
	LastError string

	d   *delivery
	ctx context.Context
}

// Context is done when the delivery has ended; its cause wraps ErrSettled, ErrLost, ErrClosed, framework.ErrSessionLost,
// framework.ErrNodeGone or what ended the lock's lease. It carries the trace context of the call of Take, which links to the
// producer's.
func (d *Delivery[T]) Context() context.Context { return d.ctx }

// Node is the item's node.
func (d *Delivery[T]) Node() string { return d.d.item }

// Ack takes the item out of the queue, in one transaction with the claim, and waits for it. It returns nil when the
// item is gone for good. An error that wraps ErrLost says that the delivery had ended before: somebody else may have
// the item. ErrSettled: it was settled before. When ctx ends first, the acknowledgement goes on.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.AckAsync().Wait(ctx) }

// AckWith is Ack together with operations of the caller's own, in one transaction: all of it happens, or nothing. When one of them
// is refused the error wraps ErrRefused, nothing was done, and the delivery is open as before: it can still be settled, in
// whatever way. They must not touch the queue's nodes, and need no Guard: they happen after the item has gone. The other errors
// are those of Ack.
func (d *Delivery[T]) AckWith(ctx context.Context, ops ...framework.Op) error {
	if err := checkOps("AckWith", ops); err != nil {
		return framework.Wrap("ack", d.d.item, err)
	}
	return d.pending("ack", func(finished func(error)) { d.d.ackWith(ops, finished) }).Wait(ctx)
}

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the item is this delivery's: it is refused
// before it is sent once the delivery has ended here, and by the servers once the item was acknowledged, or was given to anybody
// again. A purge of the queue does not end it: it removes the item, which nobody gets then.
func (d *Delivery[T]) Guard() framework.Op { return d.d.fence() }

// Token is a fencing token: it rises with each delivery of this item, wherever the item was meanwhile. Whoever the item's work
// changes should remember the highest token of that item, and refuse lower ones. Tokens of different items, or queues, say nothing
// about each other.
func (d *Delivery[T]) Token() int64 { return d.d.token() }

// AckAsync is Ack, and does not wait: acknowledgements on their way at once share transactions.
func (d *Delivery[T]) AckAsync() *Pending { return d.pending("ack", d.d.ack) }

// Nack gives the item back because of reason, which may be nil. It comes again after a time, first in line and with a
// higher Attempt. If after is 0 that is the time of the queue's retry policy (WithRetry), or at once if it has none. An item whose attempts are used up (WithMaxAttempts) becomes a dead letter. Its
// errors are those of Ack.
//
// In a strict queue nothing behind the item comes before it, but items of a higher priority do. This Queue alone keeps the
// time: whoever is the consumer
// after it, because it has died, was closed or has lingered (WithLinger), gets the item at once.
func (d *Delivery[T]) Nack(ctx context.Context, after time.Duration, reason error) error {
	if after < 0 {
		return framework.Wrap("nack", d.d.item, fmt.Errorf("%w: after %v is negative", ErrOption, after))
	}
	if after == 0 {
		after = d.d.shift.q.retryDelay(d.Attempt)
	}
	return d.nack(after, reason).Wait(ctx)
}

// nack is Nack, does not wait for the outcome, and knows no retry policy.
func (d *Delivery[T]) nack(after time.Duration, reason error) *Pending {
	return d.pending("nack", func(finished func(error)) { d.d.nack(after, reason, finished) })
}

func (d *Delivery[T]) pending(op string, begin func(finished func(error))) *Pending {
	p, began := newPending(), time.Now()
	begin(func(err error) {
		d.d.shift.q.tel.ended(op, began, err)
		p.finish(framework.Wrap(op, d.d.item, err))
	})
	return p
}
