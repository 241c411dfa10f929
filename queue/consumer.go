package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// consumer matches the deliveries of a Queue with its calls of Take. It takes part in the queue from the first call
// until some time after the last, in one shift for each session.
type consumer struct {
	q *core

	mu      sync.Mutex
	waits   []*take
	running bool
	shift   *shift
	last    time.Time // that a Take began or was served
	kicked  chan struct{}

	inspecting   chan struct{} // held by who looks for claimable items; guards what follows
	lists        []segmentList
	lanesChanged int64 // the transaction of the last change of the list of lanes
}

// take is one call of Take.
type take struct {
	got chan taken // has room
}

type taken struct {
	d   *delivery
	err error
}

func newConsumer(q *core) *consumer {
	return &consumer{q: q, kicked: make(chan struct{}, 1), inspecting: make(chan struct{}, 1)}
}

// take waits for a delivery.
func (c *consumer) take(ctx context.Context) (*delivery, error) {
	if err := c.lookFirst(ctx); err != nil {
		return nil, err
	}
	t := &take{make(chan taken, 1)}
	if err := c.enter(t); err != nil {
		return nil, err
	}
	select {
	case got := <-t.got:
		return got.d, got.err
	case <-ctx.Done():
		if d := c.leave(t); d != nil {
			c.handBack(d)
		}
		return nil, framework.Ended(ctx)
	}
}

// enter queues a call and makes the consumer run.
func (c *consumer) enter(t *take) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(c.q.work); err != nil {
		return err
	}
	c.waits = append(c.waits, t)
	c.last = time.Now()
	if !c.running {
		if !c.q.tasks.start(c.run) {
			return ErrClosed
		}
		c.running = true
	}
	if c.shift != nil {
		c.shift.hopes = max(0, c.shift.hopes-1)
		c.serve(c.shift)
	}
	c.kick()
	return nil
}

// leave takes a call back, and returns what it was handed meanwhile, or nil.
func (c *consumer) leave(t *take) *delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w *take) bool { return w == t })
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
	if c.shift == d.shift && c.shift.held[d] {
		delete(c.shift.held, d)
		c.shift.ready = slices.Insert(c.shift.ready, 0, d)
		c.serve(c.shift)
	}
}

func (c *consumer) kick() {
	select {
	case c.kicked <- struct{}{}:
	default:
	}
}

// serve hands out what is ready. c.mu is held.
func (c *consumer) serve(sh *shift) {
	if sh.ctx.Err() != nil || !sh.gate.isOpen() { // what is ready goes back, or waits for the end of the pause
		return
	}
	for len(sh.ready) > 0 && len(c.waits) > 0 {
		d, t := sh.ready[0], c.waits[0]
		sh.ready, c.waits = sh.ready[1:], c.waits[1:]
		if d.tenure.Err() != nil {
			c.waits = append([]*take{t}, c.waits...)
			continue
		}
		sh.held[d] = true
		c.last = time.Now()
		t.got <- taken{d: d}
	}
}

// resume hands out what was ready during a pause.
func (c *consumer) resume(sh *shift) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serve(sh)
	c.kick()
}

// fail ends all calls with an error.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.waits {
		t.got <- taken{err: err}
	}
	c.waits, c.running = nil, false
}

// run takes part in the queue, in shift after shift.
func (c *consumer) run() {
	back := c.q.client.Retries()
	for {
		began := time.Now()
		err := c.work()
		if time.Since(began) > c.q.client.Config().SessionTimeout {
			back.Reset()
		}
		switch {
		case c.q.work.Err() != nil:
			c.fail(context.Cause(c.q.work))
			return
		case errors.Is(err, errIdle):
			if c.rest() {
				return
			}
		case framework.IsTransient(err) || errors.Is(err, framework.ErrNodeGone):
			_ = back.Pause(c.q.work) // the next step sees it
		case err != nil:
			c.fail(err)
			return
		}
	}
}

// errIdle ends a shift when nobody has called Take for a while.
var errIdle = errors.New("nobody takes")

// rest tells whether the consumer may end: nobody has called since.
func (c *consumer) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waits) > 0 {
		return false
	}
	c.running = false
	return true
}

// work is one shift.
func (c *consumer) work() error {
	s, err := c.q.client.Session(c.q.work)
	if err != nil {
		return err
	}
	if err := c.q.find(c.q.work, s); err != nil {
		return err
	}
	sh, born := newShift(c, s), c.q.stored().born
	c.mu.Lock()
	c.shift = sh
	c.mu.Unlock()
	if err = sh.run(); errors.Is(err, framework.ErrNoNode) || errors.Is(err, ErrNotQueue) || errors.Is(err, errDropped) || errors.Is(err, errVacant) {
		err = c.q.otherwise(s, born, err)
	}
	c.mu.Lock()
	c.shift = nil
	c.mu.Unlock()
	if lost := s.Err(); lost != nil && !errors.Is(err, errIdle) {
		return lost // whatever a call says that the session's end has ended
	}
	return err
}
