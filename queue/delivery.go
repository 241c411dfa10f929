package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// Delivery is an item that this process has claimed. Settle it once, by Ack, Nack or Return.
//
// Guarantee: no other consumer has the item until Context ends, as long as this process is
// scheduled (see package framework). Context ends when the delivery is settled. It also ends when
// the delivery is lost, with the session or the queue's lock: then a consumer, which may be this
// one, gets the item again with a higher Attempt.
type Delivery[T any] struct {
	// Value is the value that was put.
	Value T
	// Attempt counts from 1 how often the item was claimed. A consumer that died between a claim
	// and its delivery counts too. In a parallel queue a claim that was given up about when the
	// item was put or given back may count: one of a Take that ended without an item, or one that
	// was made ahead (WithPrefetch). Each put and each return of an item explains at most one such
	// attempt.
	Attempt int
	// ID is the id that the producer gave the item (WithID), or "".
	ID string
	// Priority is the priority that the item was put with (WithPriority).
	Priority int
	// Headers are the producer's headers (WithHeaders), or nil.
	Headers map[string]string
	// EnqueuedAt is the time of the put, by the clock of the ensemble's leader, in milliseconds. It
	// stays the same when the item is delayed, given back, buried or requeued.
	EnqueuedAt time.Time
	// LastError is the reason of the last failed attempt (Nack), or "". A strict queue does not
	// store reasons.
	LastError string

	item *claimedItem
	tel  *telemetry
	span takeSpan
}

// Context is done when the delivery has ended. Its cause wraps ErrSettled, ErrLost, ErrClosed,
// framework.ErrSessionLost, framework.ErrNodeGone or the reason that the lock's lease ended. It
// carries the trace context of the call of Take, which links to the producer's. Context may be
// called at any time, also after the delivery has ended.
func (d *Delivery[T]) Context() context.Context {
	return d.span.within(d.item.hold.Context())
}

// Node is the item's node.
func (d *Delivery[T]) Node() string { return d.item.node }

// Ack removes the item from the queue, in one transaction with the claim, and waits for the
// servers. If it returns nil, the item is gone for good. If the error wraps ErrLost, the delivery
// had ended before: another consumer may have the item. If it wraps ErrSettled, the delivery was
// settled before. If it wraps ErrUnknown, the answer was lost and it cannot be found out whether
// the item is gone. If ctx ends first, the error is that of ctx, and the acknowledgement continues.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.AckAsync().Wait(ctx) }

// AckAsync is Ack without waiting. Acknowledgements that are on their way at once share
// transactions.
func (d *Delivery[T]) AckAsync() *Pending { return d.beginSettling("ack", d.item.ack) }

// AckWith is Ack together with the caller's own operations, in one transaction: all of it happens,
// or no part. If the servers refuse one of the operations, the error wraps ErrRefused, no part was
// done, and the delivery is still open: it can be settled in any way. The operations must not touch
// the queue's nodes, and need no Guard: they happen after the item has gone. The other errors are
// those of Ack.
func (d *Delivery[T]) AckWith(ctx context.Context, ops ...framework.Op) error {
	if err := checkOps("AckWith", ops); err != nil {
		return failure.Wrap("ack", d.Node(), err)
	}
	return d.beginSettling("ack", func(then func(error)) { d.item.ackWith(ops, then) }).Wait(ctx)
}

// Guard is an operation for a transaction (Client.Multi) that makes it succeed only while this
// delivery has the item. It fails before it is sent if the delivery has ended here. The servers
// refuse it if the item was acknowledged or claimed again. A purge of the queue does not end the
// delivery: it removes the item for all consumers.
func (d *Delivery[T]) Guard() framework.Op { return d.item.guard() }

// Token is a fencing token: it rises with each delivery of this item, also after the item was
// moved. A resource that the item's work changes should remember the item's highest token, and
// refuse lower ones. Tokens of different items, or queues, are not comparable.
func (d *Delivery[T]) Token() int64 { return d.item.token() }

// Nack returns the item to the queue because of reason, which may be nil. The item comes again
// after a time, with a higher Attempt, before the unclaimed items of its priority. A waiting Take
// has already claimed the next item. If after is 0, the time is that of the queue's retry policy
// (WithRetry), or 0 without a policy. An item whose attempts are used up (WithMaxAttempts) becomes
// a dead letter. The time may be up to 10 years; for another one the error wraps ErrOption, and the
// delivery is still open. The other errors are those of Ack.
//
// In a strict queue no item behind this one comes before it, but items of a higher priority do.
// Only this Queue keeps the time: if it dies, is closed or leaves after its idle timeout
// (WithIdleTimeout), the next consumer gets the item at once.
func (d *Delivery[T]) Nack(ctx context.Context, after time.Duration, reason error) error {
	if after < 0 || after > queuelayout.MaxDelay {
		return failure.Wrap("nack", d.Node(),
			fmt.Errorf("%w: after %v is not between 0 and %v", ErrOption, after, queuelayout.MaxDelay))
	}
	if after == 0 {
		after = d.item.session.store.retryDelay(d.Attempt)
	}
	return d.nack(after, reason).Wait(ctx)
}

// Return gives the item back at once. The attempt does not count, except in a strict queue: use it
// for work that was cut short by something else than the item, such as the end of the program. The
// item's LastError stays. The errors are those of Ack.
func (d *Delivery[T]) Return(ctx context.Context) error {
	return d.beginSettling("return", d.item.giveBack).Wait(ctx)
}

// nack is Nack without waiting, and without the retry policy.
func (d *Delivery[T]) nack(after time.Duration, reason error) *Pending {
	return d.beginSettling("nack", func(then func(error)) { d.item.nack(after, reason, then) })
}

// bury makes the item a dead letter.
func (d *Delivery[T]) bury(reason error) *Pending {
	return d.beginSettling("bury", func(then func(error)) { d.item.bury(reason, then) })
}

// beginSettling begins to settle the delivery, and counts the outcome.
func (d *Delivery[T]) beginSettling(op string, begin func(then func(error))) *Pending {
	p, began := newPending(), time.Now()
	begin(func(err error) {
		d.tel.recordEnd(op, began, err)
		p.finish(failure.Wrap(op, d.Node(), err))
	})
	return p
}
