package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// consumer matches the deliveries of a Queue with its calls of Take. It takes part in the queue from the first call
// until some time after the last, with one session after the other.
type consumer struct {
	q *engine

	mu      sync.Mutex
	waits   []*takeCall
	running bool
	session *consumerSession
	last    time.Time // that a Take began or was served
	kicked  chan struct{}

	inspecting   chan struct{} // held by who looks for claimable items; guards what follows
	lists        []segmentList
	lanesChanged int64 // the transaction of the last change of the list of lanes
}

// takeCall is one call of Take.
type takeCall struct {
	got chan takeResult // has room
}

type takeResult struct {
	d   *delivery
	err error
}

func newConsumer(q *engine) *consumer {
	return &consumer{q: q, kicked: make(chan struct{}, 1), inspecting: make(chan struct{}, 1)}
}

// take waits for a delivery.
func (c *consumer) take(ctx context.Context) (*delivery, error) {
	if err := c.lookFirst(ctx); err != nil {
		return nil, err
	}
	t := &takeCall{make(chan takeResult, 1)}
	if err := c.addCall(t); err != nil {
		return nil, err
	}
	select {
	case got := <-t.got:
		return got.d, got.err
	case <-ctx.Done():
		if d := c.removeCall(t); d != nil {
			c.handBack(d)
		}
		return nil, framework.Ended(ctx)
	}
}

// addCall queues a call and makes the consumer run.
func (c *consumer) addCall(t *takeCall) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(c.q.work); err != nil {
		return err
	}
	c.waits = append(c.waits, t)
	c.last = time.Now()
	if !c.running {
		if !c.q.tasks.start(c.runSessions) {
			return ErrClosed
		}
		c.running = true
	}
	if c.session != nil {
		c.session.expectedTakes = max(0, c.session.expectedTakes-1)
		c.handOut(c.session)
	}
	c.kick()
	return nil
}

// removeCall takes a call back, and returns what it was handed meanwhile, or nil.
func (c *consumer) removeCall(t *takeCall) *delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w *takeCall) bool { return w == t })
	c.kick()
	select {
	case got := <-t.got:
		return got.d
	default:
		return nil
	}
}

// handBack has the next call handed what a call that has ended was handed.
func (c *consumer) handBack(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == d.session && c.session.held[d] {
		delete(c.session.held, d)
		c.session.ready = slices.Insert(c.session.ready, 0, d)
		c.handOut(c.session)
	}
}

func (c *consumer) kick() {
	select {
	case c.kicked <- struct{}{}:
	default:
	}
}

// handOut hands out what is ready. c.mu is held.
func (c *consumer) handOut(sh *consumerSession) {
	if sh.ctx.Err() != nil || !sh.gate.isOpen() { // what is ready goes back, or waits for the end of the pause
		return
	}
	for len(sh.ready) > 0 && len(c.waits) > 0 {
		d, t := sh.ready[0], c.waits[0]
		sh.ready, c.waits = sh.ready[1:], c.waits[1:]
		if d.tenure.Err() != nil {
			c.waits = append([]*takeCall{t}, c.waits...)
			continue
		}
		sh.held[d] = true
		c.last = time.Now()
		t.got <- takeResult{d: d}
	}
}

// handOutAfterPause hands out what was ready during a pause.
func (c *consumer) handOutAfterPause(sh *consumerSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handOut(sh)
	c.kick()
}

// failCalls ends all calls with an error.
func (c *consumer) failCalls(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.waits {
		t.got <- takeResult{err: err}
	}
	c.waits, c.running = nil, false
}

// runSessions takes part in the queue, in session after session.
func (c *consumer) runSessions() {
	back := c.q.client.Backoff()
	for {
		began := time.Now()
		err := c.runSession()
		if time.Since(began) > c.q.client.Config().SessionTimeout {
			back.Reset()
		}
		switch {
		case c.q.work.Err() != nil:
			c.failCalls(context.Cause(c.q.work))
			return
		case errors.Is(err, errIdle):
			if c.mayEnd() {
				return
			}
		case framework.IsTransient(err) || errors.Is(err, framework.ErrNodeGone):
			_ = back.Pause(c.q.work) // the next step sees it
		case err != nil:
			c.failCalls(err)
			return
		}
	}
}

// errIdle ends a consumer session when nobody has called Take for a while.
var errIdle = errors.New("nobody takes")

// mayEnd reports whether the consumer may end: nobody has called since.
func (c *consumer) mayEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waits) > 0 {
		return false
	}
	c.running = false
	return true
}

// runSession is one consumer session.
func (c *consumer) runSession() error {
	s, err := c.q.client.Session(c.q.work)
	if err != nil {
		return err
	}
	if err := c.q.findOrMake(c.q.work, s); err != nil {
		return err
	}
	sh, born := newConsumerSession(c, s), c.q.storedRecord().born
	c.mu.Lock()
	c.session = sh
	c.mu.Unlock()
	if err = sh.runUntilIdle(); errors.Is(err, framework.ErrNoNode) || errors.Is(err, ErrNotQueue) || errors.Is(err, errDropped) || errors.Is(err, errVacant) {
		err = c.q.afterMissing(s, born, err)
	}
	c.mu.Lock()
	c.session = nil
	c.mu.Unlock()
	if lost := s.Err(); lost != nil && !errors.Is(err, errIdle) {
		return lost // whatever a call says that the session's end has ended
	}
	return err
}

// TryTake claims an item if there is one now, and else returns ErrEmpty without waiting for one.
//
// Now means: at a moment of the call, behind a sync, so what was put before the call is seen. No item is there for this
// Queue if all are in the hands of others, are kept for later, come back from a dead consumer whose session has not ended or
// whose items nobody has returned yet, or are lost to faster consumers; if the queue is paused, or was never made; if as many
// deliveries are open as WithMaxInFlight allows; in a strict queue also if another consumer has its lock, or an item was given back
// for a time. TryTake waits for the servers, also while the connection is suspended, until ctx ends.
//
// On an empty queue it costs a sync and a read, and writes nothing. With an item it costs these and what Take costs. Its other
// errors are those of Take.
func (q *Queue[T]) TryTake(ctx context.Context) (*Delivery[T], error) {
	ds, err := q.takeNow(ctx, 1)
	if err != nil {
		return nil, framework.Wrap("take", q.core.path, err)
	}
	return ds[0], nil
}

// TakeBatch waits for an item as Take does, and returns it with up to n-1 others that can be claimed now (see TryTake), in their
// order. Their claims share transactions. It never returns more than WithMaxInFlight allows, less what is open. Each delivery is
// settled on its own, or several with AckAll. When an error comes after the first item, it returns what it has.
func (q *Queue[T]) TakeBatch(ctx context.Context, n int) ([]*Delivery[T], error) {
	if n <= 0 {
		return nil, framework.Wrap("take", q.core.path, fmt.Errorf("%w: a batch of %d, at least 1", ErrOption, n))
	}
	first, err := q.Take(ctx)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return []*Delivery[T]{first}, nil
	}
	others, _ := q.takeNow(ctx, n-1) // what has failed fails again in the next call
	all := append([]*Delivery[T]{first}, others...)
	slices.SortFunc(all, func(a, b *Delivery[T]) int {
		return order(&fetched{path: a.Node(), at: q.core.segmentOf(a.Node())}, &fetched{path: b.Node(), at: q.core.segmentOf(b.Node())})
	})
	return all, nil
}

// takeNow takes up to n items that can be claimed now; ErrEmpty if there is none.
func (q *Queue[T]) takeNow(ctx context.Context, n int) (out []*Delivery[T], err error) {
	if err := q.core.usable(); err != nil {
		return nil, err
	}
	began := time.Now()
	for len(out) == 0 {
		ds, err := q.core.consumer.takeNow(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			if delivery := q.handOut(ctx, began, d); delivery != nil {
				out = append(out, delivery)
			}
		}
	}
	return out, nil
}

// AckAll acknowledges deliveries and waits for all outcomes. Those of one Queue share transactions: one, unless there are too
// many for the servers, or for its window. Each is acknowledged on its own: if one was lost, the others are acknowledged all the
// same. The error joins theirs, each with its item's node; see Delivery.Ack. When ctx ends first, the acknowledgements go on.
func AckAll[T any](ctx context.Context, deliveries ...*Delivery[T]) error {
	pending := make([]*Pending, len(deliveries))
	acks := map[*consumerSession][]*writeRequest{}
	for i, d := range deliveries {
		pending[i] = d.pending("ack", func(finished func(error)) {
			if p := d.d.ackPart(finished); p != nil {
				acks[d.d.session] = append(acks[d.d.session], p)
			}
		})
	}
	for sh, parts := range acks {
		for range parts {
			sh.expectTake()
		}
		sh.writeTracked(append(parts, sh.nextRequests()...)...)
	}
	var errs []error
	for _, p := range pending {
		errs = append(errs, p.Wait(ctx))
	}
	return errors.Join(errs...)
}
