package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/locks"
)

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
	errReturned = fmt.Errorf("%w: %w", ErrLost, ErrClosed)
	// errExpired is the reason of dead letters that have expired.
	errExpired = errors.New("expired")
)

// readItem decodes the item's data. If the data is no envelope, it keeps the data as the payload.
// The attempt is one more than the attempts that the header stores and those that the version
// counts, which are all its changes but the header's Unseen.
func (c *claimedItem) readItem(data []byte, st framework.Stat) {
	c.stat = st
	if c.env, c.decodeErr = queuelayout.DecodeItem(data, st); c.decodeErr != nil {
		c.env = queuelayout.Envelope{Header: queuelayout.Header{Put: max(0, st.Ctime.UnixMilli())}, Payload: data}
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
		if errors.Is(err, ErrRefused) {
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

// bury makes the item a dead letter, also if it has attempts left.
func (c *claimedItem) bury(reason error, then func(error)) {
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
	c.writeLast(c.newRequest(c.leaveOps(), newItem{chain: c.session.store.nodes.Dead, data: data}), then)
}

// endAndReturn ends a delivery that its caller has not settled, and returns the item to the queue
// with a number of attempts. then is called once with the outcome.
func (c *claimedItem) endAndReturn(attempts int, then func(error)) {
	if err := c.markSettled(errReturned); err != nil {
		then(err)
		return
	}
	c.hold.End(ErrClosed)
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
		errors.Is(err, ErrClosed) {
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
