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
	shift   *shift
	item    string         // its node
	stat    framework.Stat // of the item's node, as it was read
	version int32          // of the item's node, once it was claimed
	claim   string         // the ticket's node; "" under the lock
	guard   *locks.Lease   // the lock, or nil
	attempt int
	env     envelope
	data    []byte // as stored; kept under the lock only
	bad     error  // why the item cannot be read, or nil
	tenure  tenure

	mu      sync.Mutex
	settled error       // why it can be settled no more, or nil
	stop    func() bool // ends the watching for its loss

	// Guarded by the consumer's mutex.
	leaves bool // it is counted as being settled
	unseen bool // it is given back and was handed to nobody
}

// open reads the item and begins the delivery's time.
func (d *delivery) open(data []byte, st framework.Stat) (*delivery, error) {
	d.read(data, st)
	h, err := d.shift.s.Hold(context.Background(), d.claim)
	if err != nil {
		return nil, err
	}
	d.tenure = h
	return d, nil
}

// read takes the item in. What is no envelope is kept as it is. The attempt is what is stored, the version, and one.
func (d *delivery) read(data []byte, st framework.Stat) {
	d.stat = st
	if d.env, d.bad = decodeItem(data, st); d.bad != nil {
		d.env = envelope{header{Put: max(0, st.Ctime.UnixMilli())}, data}
	}
	d.attempt = d.env.header.Attempts + int(d.version) + 1 - d.env.header.Unseen
}

// tenure is how long a delivery stands.
type tenure interface {
	Context() context.Context
	Err() error
	End(cause error)
}

// leaving are the operations that take the claim and the item away together.
func (d *delivery) leaving() []framework.Op {
	var ops []framework.Op
	if d.claim != "" {
		ops = append(ops, framework.DeleteOp(d.claim, framework.AnyVersion))
	}
	return append(ops, framework.DeleteOp(d.item, d.version))
}

// unclaiming are the operations that take the ticket away and leave the item, so that the recoverer returns it.
func (d *delivery) unclaiming() []framework.Op {
	return []framework.Op{framework.DeleteOp(d.claim, framework.AnyVersion), d.shift.q.noticeOp()}
}

// part is a part of the delivery's.
func (d *delivery) part(ops []framework.Op, puts ...put) *part {
	return &part{session: d.shift.s, guard: d.guard, ops: ops, puts: puts}
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
		d.stop = context.AfterFunc(d.tenure.Context(), func() { _ = d.begin(ErrLost) })
	}
}

// begin marks the delivery as settled for a reason; only the first call succeeds.
func (d *delivery) begin(reason error) error {
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
	if d.shift.ctx.Err() == nil {
		d.over(reason) // makes room: the consumer lives on
	}
	return reason
}

// settle writes a part that ends the delivery, and more that may follow in its transaction. finished is called with the outcome, once.
func (d *delivery) settle(p *part, more func() []*part, finished func(error)) {
	d.settleBy(p, finished)
	d.shift.write(append([]*part{p}, more()...)...)
}

// settleBy has a part, which is to be written next, end the delivery.
func (d *delivery) settleBy(p *part, finished func(error)) {
	p.then = func(_ []framework.OpResult, err error) {
		err = lost(err)
		d.over(err)
		finished(err)
	}
	d.shift.settling(d)
}

// lost tells what the refusal of a part of a delivery's means.
func lost(err error) error {
	var tx *framework.TxError
	if errors.As(err, &tx) || errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrClosed) || errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// over ends the delivery's time and makes room for another.
func (d *delivery) over(err error) {
	if err == nil {
		err = ErrSettled
	} else if d.claim != "" {
		d.shift.write(d.part(d.unclaiming()))
	}
	d.tenure.End(err)
	d.shift.settled(d.shift.q.shelfOf(d.item))
	d.shift.settling(d)
	d.shift.closed(d)
}

// ack takes the item away for good.
func (d *delivery) ack(finished func(error)) {
	if p := d.ackPart(finished); p != nil {
		d.shift.hope()
		d.shift.write(append([]*part{p}, d.shift.next()...)...)
	}
}

// ackPart is the part that takes the item away for good, which is to be written next; nil if the delivery has ended.
func (d *delivery) ackPart(finished func(error)) *part {
	if err := d.begin(ErrSettled); err != nil {
		finished(err)
		return nil
	}
	p := d.part(append(d.leaving(), d.shift.q.gone()...))
	d.settleBy(p, finished)
	return p
}

// ackWith is ack together with the caller's own operations. If one of these is refused the delivery is open again.
func (d *delivery) ackWith(ops []framework.Op, finished func(error)) {
	if err := d.begin(ErrSettled); err != nil {
		finished(err)
		return
	}
	p := d.part(append(d.leaving(), d.shift.q.gone()...))
	p.with = ops
	p.then = func(_ []framework.OpResult, err error) {
		if errors.Is(err, ErrRefused) {
			d.reopen()
		} else {
			err = lost(err)
			d.over(err)
		}
		finished(err)
	}
	d.shift.write(p)
}

// reopen opens the delivery again, of which nothing was done. If its consumer has left meanwhile, the item is given back.
func (d *delivery) reopen() {
	d.mu.Lock()
	d.settled = nil
	d.mu.Unlock()
	d.settleWhenLost()
	if d.shift.ctx.Err() != nil {
		var given sync.WaitGroup // nobody waits for it
		d.takeBack(d.attempt, &given)
	}
}

// nack gives the item back: at once, later, or to the dead letters if its attempts are used up.
func (d *delivery) nack(after time.Duration, reason error, finished func(error)) {
	if err := d.begin(ErrSettled); err != nil {
		finished(err)
		return
	}
	d.tenure.End(ErrSettled) // before anybody else can have the item
	switch most := d.shift.q.maxAttempts; {
	case most > 0 && d.attempt >= most:
		d.bury(reason, finished)
	case d.guard != nil:
		d.shift.deskOf().giveBack(d, after)
		d.over(nil)
		finished(nil)
	default:
		d.giveBack(d.attempt, after, reason, finished)
	}
}

// discard makes the item a dead letter, whatever attempts it has left.
func (d *delivery) discard(reason error, finished func(error)) {
	if err := d.begin(ErrSettled); err != nil {
		finished(err)
		return
	}
	d.tenure.End(ErrSettled)
	d.bury(reason, finished)
}

// giveBack puts the item where it is claimed next, now or later.
func (d *delivery) giveBack(attempts int, after time.Duration, reason error, finished func(error)) {
	data, err := d.env.failed(attempts, text(reason)).encode()
	if err != nil {
		d.over(err)
		finished(err)
		return
	}
	q := d.shift.q
	if after > 0 {
		d.settle(d.part(append(d.leaving(), q.laterOp()), put{after: after, data: data}), nothing, finished)
		return
	}
	p := d.part(d.leaving(), put{line: q.lane(redoLane), data: data})
	d.settle(p, func() []*part {
		if d.unseen {
			p.ops = append(p.ops, q.ringOp())
		} else {
			d.shift.drawReturned(p)
		}
		return nil
	}, finished)
}

// putBack gives back, as if it had so many attempts, what nobody has settled. Under the lock the item is where it
// belongs.
func (d *delivery) putBack(attempts int, finished func(error)) {
	if d.guard != nil || d.bad != nil {
		d.over(ErrClosed)
		finished(nil)
		return
	}
	d.giveBack(attempts, 0, nil, finished)
}

// bury moves the item to the dead letters.
func (d *delivery) bury(reason error, finished func(error)) {
	e := d.env.failed(d.attempt, text(reason))
	e.header.Raw = e.header.Raw || d.bad != nil
	data, err := e.encode()
	if err != nil {
		d.over(err)
		finished(err)
		return
	}
	q := d.shift.q
	d.settle(d.part(append(d.leaving(), q.gone()...), put{line: q.dead, data: data}), nothing, finished)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func nothing() []*part { return nil }
