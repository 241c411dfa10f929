package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// delivery is an item that this Queue has claimed.
type delivery struct {
	session   *consumerSession
	item      string         // its node
	stat      framework.Stat // of the item's node, as it was read
	version   int32          // of the item's node, once it was claimed
	claim     string         // the ticket's node; "" under the lock
	guard     *locks.Lease   // the lock, or nil
	attempt   int
	env       envelope
	data      []byte // as stored; kept under the lock only
	decodeErr error  // why the item cannot be read, or nil
	tenure    tenure

	mu      sync.Mutex
	settled error       // why it can be settled no more, or nil
	stop    func() bool // ends the watching for its loss

	// Guarded by the consumer's mutex.
	leaves bool // it is counted as being settled
	unseen bool // it is given back and was handed to nobody
}

// openDelivery reads the item and begins the delivery's time.
func (d *delivery) openDelivery(data []byte, st framework.Stat) (*delivery, error) {
	d.readItem(data, st)
	h, err := d.session.s.Hold(context.Background(), d.claim)
	if err != nil {
		return nil, err
	}
	d.tenure = h
	return d, nil
}

// readItem takes the item in. What is no envelope is kept as it is. The attempt is what is stored, the version, and one.
func (d *delivery) readItem(data []byte, st framework.Stat) {
	d.stat = st
	if d.env, d.decodeErr = decodeItem(data, st); d.decodeErr != nil {
		d.env = envelope{itemHeader{Put: max(0, st.Ctime.UnixMilli())}, data}
	}
	d.attempt = d.env.header.Attempts + int(d.version) + 1 - d.env.header.Unseen
}

// tenure is how long a delivery stands.
type tenure interface {
	Context() context.Context
	Err() error
	End(cause error)
}

// removeOps are the operations that take the claim and the item away together.
func (d *delivery) removeOps() []framework.Op {
	var ops []framework.Op
	if d.claim != "" {
		ops = append(ops, framework.DeleteOp(d.claim, framework.AnyVersion))
	}
	return append(ops, framework.DeleteOp(d.item, d.version))
}

// unclaimOps are the operations that take the ticket away and leave the item, so that the recoverer returns it.
func (d *delivery) unclaimOps() []framework.Op {
	return []framework.Op{framework.DeleteOp(d.claim, framework.AnyVersion), d.session.q.signalRecovererOp()}
}

// newRequest is a part of the delivery's.
func (d *delivery) newRequest(ops []framework.Op, puts ...itemPut) *writeRequest {
	return &writeRequest{session: d.session.s, guard: d.guard, ops: ops, puts: puts}
}

// fence is the operation that is refused once somebody else can have the item: a ticket's name belongs to one claim, and under
// the lock each further claim raises the item's version.
func (d *delivery) fence() framework.Op {
	if d.claim != "" {
		return framework.CheckOp(d.claim, framework.AnyVersion).When(d.tenure.Err)
	}
	return framework.CheckOp(d.item, d.version).When(d.tenure.Err)
}

// token is the transaction that has created the item's node, and how often the node was changed since. Each of those took a
// transaction, so a node that the item is moved to has a higher token.
func (d *delivery) token() int64 { return d.stat.Czxid + int64(d.version) }

// settleWhenLost makes room for another delivery as soon as this one is lost, be it that nobody settles it.
func (d *delivery) settleWhenLost() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settled == nil {
		d.stop = context.AfterFunc(d.tenure.Context(), func() { _ = d.markSettled(ErrLost) })
	}
}

// markSettled marks the delivery as settled for a reason; only the first call succeeds.
func (d *delivery) markSettled(reason error) error {
	d.mu.Lock()
	if d.settled != nil {
		defer d.mu.Unlock()
		return d.settled
	}
	err := d.tenure.Err()
	if err != nil {
		reason = fmt.Errorf("%w: %w", ErrLost, err)
	}
	d.settled = reason
	if d.stop != nil {
		d.stop()
	}
	d.mu.Unlock()
	if err == nil {
		return nil
	}
	if d.session.ctx.Err() == nil {
		d.endDelivery(reason) // makes room: the consumer lives on
	}
	return reason
}

// writeSettlement writes a part that ends the delivery, and more that may follow in its transaction. finished is called with the outcome, once.
func (d *delivery) writeSettlement(p *writeRequest, more func() []*writeRequest, finished func(error)) {
	d.settleBy(p, finished)
	d.session.writeTracked(append([]*writeRequest{p}, more()...)...)
}

// settleBy has a part, which is to be written next, end the delivery.
func (d *delivery) settleBy(p *writeRequest, finished func(error)) {
	p.then = func(_ []framework.OpResult, err error) {
		err = settlementError(err)
		d.endDelivery(err)
		finished(err)
	}
	d.session.deliverySettling(d)
}

// settlementError tells what the refusal of a part of a delivery's means.
func settlementError(err error) error {
	var tx *framework.TxError
	if errors.As(err, &tx) || errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrClosed) || errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// endDelivery ends the delivery's time and makes room for another.
func (d *delivery) endDelivery(err error) {
	if err == nil {
		err = ErrSettled
	} else if d.claim != "" {
		d.session.writeTracked(d.newRequest(d.unclaimOps()))
	}
	d.tenure.End(err)
	d.session.itemSettled(d.session.q.segmentOf(d.item))
	d.session.deliverySettling(d)
	d.session.deliveryClosed(d)
}

// ack takes the item away for good.
func (d *delivery) ack(finished func(error)) {
	if p := d.ackPart(finished); p != nil {
		d.session.expectTake()
		d.session.writeTracked(append([]*writeRequest{p}, d.session.nextRequests()...)...)
	}
}

// ackPart is the part that takes the item away for good, which is to be written next; nil if the delivery has ended.
func (d *delivery) ackPart(finished func(error)) *writeRequest {
	if err := d.markSettled(ErrSettled); err != nil {
		finished(err)
		return nil
	}
	p := d.newRequest(append(d.removeOps(), d.session.q.leaveOps()...))
	d.settleBy(p, finished)
	return p
}

// ackWith is ack together with the caller's own operations. If one of these is refused the delivery is open again.
func (d *delivery) ackWith(ops []framework.Op, finished func(error)) {
	if err := d.markSettled(ErrSettled); err != nil {
		finished(err)
		return
	}
	p := d.newRequest(append(d.removeOps(), d.session.q.leaveOps()...))
	p.with = ops
	p.then = func(_ []framework.OpResult, err error) {
		if errors.Is(err, ErrRefused) {
			d.reopen()
		} else {
			err = settlementError(err)
			d.endDelivery(err)
		}
		finished(err)
	}
	d.session.writeTracked(p)
}

// reopen opens the delivery again, of which nothing was done. If its consumer has left meanwhile, the item is given back.
func (d *delivery) reopen() {
	d.mu.Lock()
	d.settled = nil
	d.mu.Unlock()
	d.settleWhenLost()
	if d.session.ctx.Err() != nil {
		var given sync.WaitGroup // nobody waits for it
		d.takeBack(d.attempt, &given)
	}
}

// nack gives the item back: at once, later, or to the dead letters if its attempts are used up.
func (d *delivery) nack(after time.Duration, reason error, finished func(error)) {
	if err := d.markSettled(ErrSettled); err != nil {
		finished(err)
		return
	}
	d.tenure.End(ErrSettled) // before anybody else can have the item
	switch most := d.session.q.maxAttempts; {
	case most > 0 && d.attempt >= most:
		d.moveToDeadLetters(reason, finished)
	case d.guard != nil:
		d.session.currentStrictConsumer().returnFirst(d, after)
		d.endDelivery(nil)
		finished(nil)
	default:
		d.giveBack(d.attempt, after, reason, finished)
	}
}

// discard makes the item a dead letter, whatever attempts it has left.
func (d *delivery) discard(reason error, finished func(error)) {
	if err := d.markSettled(ErrSettled); err != nil {
		finished(err)
		return
	}
	d.tenure.End(ErrSettled)
	d.moveToDeadLetters(reason, finished)
}

// giveBack puts the item where it is claimed next, now or later.
func (d *delivery) giveBack(attempts int, after time.Duration, reason error, finished func(error)) {
	data, err := d.env.afterFailure(attempts, text(reason)).encode()
	if err != nil {
		d.endDelivery(err)
		finished(err)
		return
	}
	q := d.session.q
	if after > 0 {
		d.writeSettlement(d.newRequest(append(d.removeOps(), q.signalDelayedOp()), itemPut{after: after, data: data}), nothing, finished)
		return
	}
	p := d.newRequest(d.removeOps(), itemPut{line: q.laneNamed(redoLane), data: data})
	d.writeSettlement(p, func() []*writeRequest {
		if d.unseen {
			p.ops = append(p.ops, q.signalLanesOp())
		} else {
			d.session.drawReturned(p)
		}
		return nil
	}, finished)
}

// putBack gives back, as if it had so many attempts, what nobody has settled. Under the lock the item is where it
// belongs.
func (d *delivery) putBack(attempts int, finished func(error)) {
	if d.guard != nil || d.decodeErr != nil {
		d.endDelivery(ErrClosed)
		finished(nil)
		return
	}
	d.giveBack(attempts, 0, nil, finished)
}

// moveToDeadLetters moves the item to the dead letters.
func (d *delivery) moveToDeadLetters(reason error, finished func(error)) {
	e := d.env.afterFailure(d.attempt, text(reason))
	e.header.Raw = e.header.Raw || d.decodeErr != nil
	data, err := e.encode()
	if err != nil {
		d.endDelivery(err)
		finished(err)
		return
	}
	q := d.session.q
	d.writeSettlement(d.newRequest(append(d.removeOps(), q.leaveOps()...), itemPut{line: q.dead, data: data}), nothing, finished)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func nothing() []*writeRequest { return nil }

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

// Nack gives the item back because of reason, which may be nil. The item comes again after a time, with a higher Attempt, before the
// items of its priority that nobody has claimed by then; a Take that waits has claimed the next item. If after is 0, the time is
// that of the queue's retry policy (WithRetry), or none if it has no policy. An item whose attempts are used up (WithMaxAttempts)
// becomes a dead letter. The errors are those of Ack.
//
// In a strict queue nothing behind the item comes before it, but items of a higher priority do. Only this Queue keeps the time: if
// it dies, is closed or leaves after its idle timeout (WithIdleTimeout), the next consumer gets the item at once.
func (d *Delivery[T]) Nack(ctx context.Context, after time.Duration, reason error) error {
	if after < 0 {
		return framework.Wrap("nack", d.d.item, fmt.Errorf("%w: after %v is negative", ErrOption, after))
	}
	if after == 0 {
		after = d.d.session.q.retryDelay(d.Attempt)
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
		d.d.session.q.tel.ended(op, began, err)
		p.finish(framework.Wrap(op, d.d.item, err))
	})
	return p
}
