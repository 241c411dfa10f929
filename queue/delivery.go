package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/usercode"
	"github.com/lockstep-go/lockstep/locks"
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
	// Kind is the kind of the item (Kind.Put, WithKind), or "".
	Kind string
	// Priority is the priority that the item was put with (WithPriority).
	Priority int
	// Headers are the producer's headers (WithHeaders), or nil.
	Headers map[string]string
	// Enqueued is the time of the put, by the clock of the ensemble's leader, in milliseconds. It
	// stays the same when the item is delayed, given back, buried or requeued.
	Enqueued time.Time
	// LastError is the reason of the last failed attempt (Nack), or "". A strict queue does not
	// store reasons.
	LastError string

	item *claimedItem
	tel  *telemetry
	span takeSpan
}

// Context is done when the delivery has ended. Its cause wraps ErrSettled, ErrLost,
// framework.ErrClosed, framework.ErrSessionLost, framework.ErrNodeGone or the reason that the
// lock's lease ended. It carries the trace context of the call of Take, which links to the
// producer's. Context may be called at any time, also after the delivery has ended.
func (d *Delivery[T]) Context() context.Context {
	return d.span.within(d.item.hold.Context())
}

// Node is the item's node.
func (d *Delivery[T]) Node() string { return d.item.node }

// Ack removes the item from the queue, in one transaction with the claim, and waits for the
// servers. If it returns nil, the item is gone for good. If the error wraps ErrLost, the delivery
// had ended before: another consumer may have the item. If it wraps ErrSettled, the delivery was
// settled before. If it wraps framework.ErrOutcomeUnknown, the answer was lost and it cannot be
// found out whether the item is gone. If ctx ends first, the error is that of ctx, and the
// acknowledgement continues.
func (d *Delivery[T]) Ack(ctx context.Context) error { return d.AckAsync().Wait(ctx) }

// AckAsync is Ack without waiting. Acknowledgements that are on their way at once share
// transactions.
func (d *Delivery[T]) AckAsync() *Pending { return d.beginSettling("ack", d.item.ack) }

// AckWith is Ack together with the caller's own operations, in one transaction: all of it happens,
// or no part. If the servers refuse one of the operations, the error wraps framework.ErrRefused, no
// part was done, and the delivery is still open: it can be settled in any way. The operations must
// not touch the queue's nodes, and need no Guard: they happen after the item has gone. The other
// errors are those of Ack.
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
// a dead letter. The time may be up to 10 years; for another one the error wraps
// framework.ErrInvalid, and the delivery is still open. The other errors are those of Ack.
//
// In a strict queue no item behind this one comes before it, but items of a higher priority do.
// Only this Queue keeps the time: if it dies, is closed or leaves after its idle timeout
// (WithIdleTimeout), the next consumer gets the item at once.
func (d *Delivery[T]) Nack(ctx context.Context, after time.Duration, reason error) error {
	if after < 0 || after > queuelayout.MaxDelay {
		return failure.Wrap("nack", d.Node(),
			fmt.Errorf("%w: after %v is not between 0 and %v", errOption, after, queuelayout.MaxDelay))
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

// permanent makes the item a dead letter.
func (d *Delivery[T]) permanent(reason error) *Pending {
	return d.beginSettling("permanent", func(then func(error)) { d.item.permanent(reason, then) })
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

// Pending is a put, or an acknowledgement, that is on its way.
type Pending struct {
	done chan struct{}
	err  error
}

func newPending() *Pending { return &Pending{done: make(chan struct{})} }

func (p *Pending) finish(err error) {
	p.err = err
	close(p.done)
}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the outcome. If ctx ends first it returns the end of ctx, and the put or
// acknowledgement continues.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}

// claimedItem is an item that this Queue has claimed, from its claim until it is settled. It is the
// untyped part of a Delivery.
type claimedItem struct {
	session   *consumerSession
	id        queuelayout.Item // its segment and number
	node      string           // the path of the item's node
	stat      framework.Stat   // of the node, as it was read
	version   int32            // of the node, after the claim
	ticket    string           // the node of the claim; "" in a strict queue
	lease     *locks.Lease     // of the queue's lock; nil in a parallel queue
	attempt   int
	env       queuelayout.Envelope
	data      []byte // as stored; kept in a strict queue only
	decodeErr error  // why the item cannot be read, or nil
	hold      itemHold

	mu       sync.Mutex
	settled  error       // why it cannot be settled any more, or nil
	stopLoss func() bool // stops watching for the end of hold

	// Guarded by the takeQueue's mutex.
	settling bool // it counts as being settled
	unseen   bool // it returns to the queue, and no caller has had it
}

// itemHold is the time in which no other consumer can claim the item.
type itemHold interface {
	Context() context.Context
	Err() error
	End(cause error)
}

var (
	// errReturned is the error of settling a delivery after its Queue was closed.
	errReturned = fmt.Errorf("%w: %w", ErrLost, errClosed)
	// errExpired is the reason of dead letters that have expired.
	errExpired = errors.New("expired")
)

// readItem decodes the item's data. If the data is no envelope, it keeps the data as the payload.
// The attempt is one more than the attempts that the header stores and those that the version
// counts, which are all its changes but the header's Unseen.
func (c *claimedItem) readItem(data []byte, stat framework.Stat) {
	c.stat = stat
	if c.env, c.decodeErr = queuelayout.DecodeItem(data, stat); c.decodeErr != nil {
		c.env = queuelayout.Envelope{Header: queuelayout.Header{Put: max(0, stat.Ctime.UnixMilli())}, Payload: data}
	}
	c.attempt = c.env.Attempt(c.version)
}

// guard is the operation that the servers refuse once another consumer can have the item: a
// ticket's name belongs to one claim, and in a strict queue each further claim raises the item's
// version.
func (c *claimedItem) guard() framework.Op {
	if c.ticket != "" {
		return primitives.When(framework.CheckOp(c.ticket, framework.AnyVersion), c.hold.Err)
	}
	return primitives.When(framework.CheckOp(c.node, c.version), c.hold.Err)
}

// token is the transaction that has created the item's node, plus the number of its changes. Each
// change took a transaction, so a node that the item is moved to has a higher token.
func (c *claimedItem) token() int64 { return c.stat.Czxid + int64(c.version) }

// ack removes the item.
func (c *claimedItem) ack(then func(error)) {
	if r := c.ackRequest(then); r != nil {
		c.session.writeRequests(append([]*writeRequest{r}, c.session.nextAfterAcks(1)...)...)
	}
}

// ackRequest is the request that removes the item, to be written next. It is nil if the delivery
// has ended.
func (c *claimedItem) ackRequest(then func(error)) *writeRequest {
	if err := c.markSettled(ErrSettled); err != nil {
		then(err)
		return nil
	}
	r := c.newRequest(c.leaveOps())
	c.endWith(r, then)
	return r
}

// ackWith is ack together with the caller's own operations. If the servers refuse one of these, the
// delivery is open again.
func (c *claimedItem) ackWith(ops []framework.Op, then func(error)) {
	if err := c.markSettled(ErrSettled); err != nil {
		then(err)
		return
	}
	r := c.newRequest(c.leaveOps())
	r.with = ops
	r.then = func(_ []framework.OpResult, err error) {
		if errors.Is(err, errRefused) {
			c.reopen()
		} else {
			err = settlementError(err)
			c.endDelivery(err)
		}
		then(err)
	}
	c.session.writeRequests(r)
}

// nack gives the item back after a failed attempt: at once, later, or to the dead letters if its
// attempts are used up.
func (c *claimedItem) nack(after time.Duration, reason error, then func(error)) {
	if err := c.markSettled(ErrSettled); err != nil {
		then(err)
		return
	}
	c.hold.End(ErrSettled) // before another consumer can have the item
	if most := c.session.settings.maxAttempts; most > 0 && c.attempt >= most {
		c.moveToDeadLetters(reason, then)
		return
	}
	c.session.order.returnItem(c, c.attempt, after, reason, then)
}

// giveBack gives the item back without a failed attempt.
func (c *claimedItem) giveBack(then func(error)) {
	if err := c.markSettled(ErrSettled); err != nil {
		then(err)
		return
	}
	c.hold.End(ErrSettled)
	c.session.order.returnItem(c, c.attempt-1, 0, c.formerReason(), then)
}

// formerReason is why an attempt before this one has failed, or nil.
func (c *claimedItem) formerReason() error {
	if text := c.env.Header.Error; text != "" {
		return errors.New(text)
	}
	return nil
}

// permanent makes the item a dead letter, also if it has attempts left.
func (c *claimedItem) permanent(reason error, then func(error)) {
	if err := c.markSettled(ErrSettled); err != nil {
		then(err)
		return
	}
	c.hold.End(ErrSettled)
	c.moveToDeadLetters(reason, then)
}

// buryUnseen makes an item a dead letter before it has reached a caller.
func (c *claimedItem) buryUnseen(reason error) {
	if c.markSettled(ErrSettled) == nil {
		c.moveToDeadLetters(reason, func(error) {})
	}
}

// settleExpired removes an expired item, or makes it a dead letter. Its claim does not count as an
// attempt.
func (c *claimedItem) settleExpired() {
	if c.markSettled(ErrSettled) != nil {
		return
	}
	c.attempt--
	if c.session.settings.dropExpired {
		c.writeLast(c.newRequest(c.leaveOps()), func(error) {})
		return
	}
	c.moveToDeadLetters(errExpired, func(error) {})
}

// moveToDeadLetters moves the item to the dead letters, with the reason.
func (c *claimedItem) moveToDeadLetters(reason error, then func(error)) {
	e := c.env.AfterFailure(c.attempt, reason)
	e.Header.Raw = e.Header.Raw || c.decodeErr != nil
	data, err := e.Encode()
	if err != nil {
		c.endDelivery(err)
		then(err)
		return
	}
	c.writeLast(c.newRequest(c.leaveOps(), newItem{chain: c.session.store.nodes.Dead, data: data}), func(err error) {
		if err == nil {
			c.tellDead(newDeadLetter(e))
		}
		then(err)
	})
}

// tellDead calls the function of WithOnDead.
func (c *claimedItem) tellDead(letter DeadLetter) {
	f := c.session.settings.onDead
	if f == nil {
		return
	}
	store := c.session.store
	c.session.queueTasks.Start(func() {
		_ = usercode.Call(store.client.Logger(), errPanic, "the function of WithOnDead", // the log has it
			[]any{"path", store.nodes.Path, "item", c.node}, func() error { f(letter); return nil })
	})
}

// endAndReturn ends a delivery that its caller has not settled, and returns the item to the queue
// with a number of attempts. then is called once with the outcome.
func (c *claimedItem) endAndReturn(attempts int, then func(error)) {
	if err := c.markSettled(errReturned); err != nil {
		then(err)
		return
	}
	c.hold.End(errClosed)
	c.session.order.returnUnsettled(c, attempts, then)
}

// uncountRequest returns a request after which the item's last claim does not count as an attempt.
// It is nil if the item cannot be encoded.
func (c *claimedItem) uncountRequest() *writeRequest {
	e := c.env
	e.Header.Unseen += 2 // the claim has raised the version, and this write does
	data, err := e.Encode()
	if err != nil {
		return nil
	}
	return c.newRequest([]framework.Op{framework.SetOp(c.node, data, c.version)})
}

// newRequest returns a request that the servers refuse once the claim has ended.
func (c *claimedItem) newRequest(ops []framework.Op, items ...newItem) *writeRequest {
	r := &writeRequest{session: c.session.s, ops: ops, items: items}
	if c.lease != nil {
		r.requires = []precondition{leaseHeld{c.lease}}
	}
	return r
}

// leaseHeld is the precondition that a lease of the queue's lock is held.
type leaseHeld struct{ lease *locks.Lease }

func (l leaseHeld) ops() []framework.Op { return []framework.Op{l.lease.Guard()} }

// removeOps remove the claim and the item together.
func (c *claimedItem) removeOps() []framework.Op {
	var ops []framework.Op
	if c.ticket != "" {
		ops = append(ops, framework.DeleteOp(c.ticket, framework.AnyVersion))
	}
	return append(ops, framework.DeleteOp(c.node, c.version))
}

// leaveOps are removeOps of an item that leaves a bounded queue.
func (c *claimedItem) leaveOps() []framework.Op {
	return append(c.removeOps(), c.session.store.countLeaving()...)
}

// settleWhenLost makes room for another delivery when this one is lost, even if its caller does not
// settle the delivery. In a strict queue it does nothing: all deliveries end with the lease of the
// lock. Then the consumer session ends too, and returnAll settles them.
func (c *claimedItem) settleWhenLost() {
	if c.lease != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled == nil {
		c.stopLoss = context.AfterFunc(c.hold.Context(), func() { _ = c.markSettled(ErrLost) })
	}
}

// markSettled marks the item as settled for a reason. Only the first call succeeds, and only before
// the hold has ended.
func (c *claimedItem) markSettled(reason error) error {
	c.mu.Lock()
	if c.settled != nil {
		defer c.mu.Unlock()
		return c.settled
	}
	err := c.hold.Err()
	if err != nil {
		reason = fmt.Errorf("%w: %w", ErrLost, err)
	}
	c.settled = reason
	if c.stopLoss != nil {
		c.stopLoss()
	}
	c.mu.Unlock()
	if err == nil {
		return nil
	}
	if c.session.ctx.Err() == nil {
		c.endDelivery(reason) // makes room: the consumer session continues
	}
	return reason
}

// reopen opens a delivery again after the servers have refused its whole settlement. If its
// consumer session has ended meanwhile, the item goes back.
func (c *claimedItem) reopen() {
	c.mu.Lock()
	c.settled = nil
	c.mu.Unlock()
	c.settleWhenLost()
	if c.session.ctx.Err() != nil {
		c.endAndReturn(c.attempt, func(error) {})
	}
}

// writeLast writes a request that ends the delivery.
func (c *claimedItem) writeLast(r *writeRequest, then func(error)) {
	c.endWith(r, then)
	c.session.writeRequests(r)
}

// endWith makes a request, which is to be written next, end the delivery. then is called once
// with the outcome.
func (c *claimedItem) endWith(r *writeRequest, then func(error)) {
	r.then = func(_ []framework.OpResult, err error) {
		err = settlementError(err)
		c.endDelivery(err)
		then(err)
	}
	c.session.claims.beginSettling(c)
}

// settlementError returns the error of a settlement whose request has failed with err. It adds
// ErrLost if the servers refused the request, or the session, the client or the Queue has ended.
func settlementError(err error) error {
	if err == nil {
		return nil
	}
	var tx *framework.TxError
	if errors.As(err, &tx) || errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrClosed) ||
		errors.Is(err, errClosed) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// endDelivery ends the hold and makes room for another delivery. If err is not nil, the item was
// not settled: then endDelivery deletes the ticket, so that the recoverer returns the item.
func (c *claimedItem) endDelivery(err error) {
	if err == nil {
		err = ErrSettled
	} else if c.ticket != "" {
		c.session.writeRequests( // two requests: the servers refuse the first one if an operator has deleted the ticket
			c.newRequest([]framework.Op{framework.DeleteOp(c.ticket, framework.AnyVersion)}),
			c.newRequest([]framework.Op{c.session.store.nodes.SignalRecoverer()}))
	}
	c.hold.End(err)
	c.session.itemSettled(c.id.Segment)
	c.session.claims.removeSettled(c)
}
