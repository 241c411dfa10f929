package link

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Errors of a request.
var (
	// ErrDown is a reply's error when the connection ended before the answer: whether the request was carried out
	// is not known then.
	ErrDown = errors.New("link: the connection ended before the answer")
	// ErrNotSent is a reply's error when there is no connection that takes requests, or when it ended before any of the
	// request was written: no server has seen it.
	ErrNotSent = errors.New("link: not sent")
	// ErrFull is a reply's error when MaxQueued bytes wait to be written already: no server has seen the request.
	ErrFull = errors.New("link: too much waits to be sent")
	// ErrTooLong is a reply's error when the answer is longer than MaxAnswer.
	ErrTooLong = errors.New("link: the answer is too long")
)

// Call is one request and what is to be done with its answer. It is sent once.
type Call struct {
	Op   wire.Op
	Body wire.Request
	// Urgent lets the request leave before all others that are not urgent and still wait to be written.
	Urgent bool
	// Done is called once, with the answer or with the connection's end, from whichever goroutine knows of it,
	// and perhaps before Send has returned. It must not block.
	Done func(Reply)

	sent bool // given to the network; guarded by the connection's mutex
}

// Reply is the answer to a request.
type Reply struct {
	// Zxid is the transaction of the answer's header. Of a write it is the write's own.
	Zxid int64
	// SessionID is the session of the connection that carried request and answer.
	SessionID int64
	// Code is the server's verdict.
	Code wire.Code
	// Body is the record behind the header, valid until Done returns.
	Body []byte
	// Err is one of this package's errors of a request; there is no answer then.
	Err error
}

// firstXid is the least number of a Call. The library counts the few requests of its own from 1.
const firstXid = 1 << 30

// Send queues requests, in this order: what is sent later reaches the server later, unless it is urgent. It never waits for the
// network. Without an admitted connection it returns false, and they have been answered with ErrNotSent.
func (m *Monitor) Send(calls ...*Call) (queued bool) { return m.send(calls, false) }

// Offer is Send for requests of any size: it refuses them with ErrFull while MaxQueued bytes wait to be written. Room tells when to try again.
func (m *Monitor) Offer(calls ...*Call) (queued bool) { return m.send(calls, true) }

func (m *Monitor) send(calls []*Call, bounded bool) (queued bool) {
	err := ErrNotSent
	if c := m.admitting(calls[0].Op); c != nil {
		err = c.send(calls, bounded)
	}
	return answered(calls, err)
}

// answered answers calls that were not queued, and reports whether they were.
func answered(calls []*Call, err error) (queued bool) {
	if err == nil {
		return true
	}
	for _, call := range calls {
		call.Done(Reply{Err: err})
	}
	return false
}

// Room returns a channel that is closed once the connection takes more requests, or has ended.
func (m *Monitor) Room() <-chan struct{} {
	m.mu.Lock()
	c := m.cur
	m.mu.Unlock()
	if c != nil {
		if room := c.awaitRoom(); room != nil {
			return room
		}
	}
	room := make(chan struct{})
	close(room)
	return room
}

// admitting returns the connection that takes a request now, or nil.
func (m *Monitor) admitting(op wire.Op) *conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cur
	if c == nil || !m.status.Up || c.generation != m.status.Generation || !c.admitted && op != wire.OpAuth {
		return nil
	}
	return c
}

// Admit lets requests pass on the connection of a generation, and queues the first ones before all others. Until then it takes
// credentials alone, so that nothing is asked without them.
func (m *Monitor) Admit(generation int64, first ...*Call) {
	m.mu.Lock()
	err := ErrNotSent
	if m.cur != nil && m.cur.generation == generation {
		err = nil
		if len(first) > 0 {
			err = m.cur.send(first, false)
		}
		m.cur.admitted = true
	}
	m.mu.Unlock()
	answered(first, err)
}

// Seen is the newest transaction that an answer has told of.
func (m *Monitor) Seen() int64 { return m.seen.Load() }

// saw notes the newest transaction that a server has told of.
func (m *Monitor) saw(zxid int64) {
	for {
		seen := m.seen.Load()
		if zxid <= seen || m.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// send queues the calls and has their answers awaited, unless the connection has ended or, if bounded, is full.
func (c *conn) send(calls []*Call, bounded bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pending == nil:
		return ErrNotSent
	case bounded && !calls[0].Urgent && c.out.waiting >= MaxQueued:
		return ErrFull
	}
	for _, call := range calls {
		c.pending[c.xid] = call
		c.out.putCall(call, c.xid)
		c.xid = nextXid(c.xid)
	}
	c.work.Signal()
	return nil
}

// awaitRoom returns a channel that is closed when half of the outbox is free, or nil if it is.
func (c *conn) awaitRoom() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil || c.out.waiting < MaxQueued {
		return nil
	}
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room
}

func nextXid(xid int32) int32 { return firstXid | (xid+1)&(firstXid-1) }

// take takes a call out of those that wait, or returns nil.
func (c *conn) take(xid int32) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.pending[xid]
	delete(c.pending, xid)
	return call
}

// fail answers everything that waits, and refuses more.
func (c *conn) fail() {
	c.mu.Lock()
	pending := c.pending
	c.pending, c.out = nil, outbox{}
	c.tellRoom()
	c.work.Signal()
	c.mu.Unlock()
	for _, call := range pending {
		err := ErrNotSent
		if call.sent {
			err = ErrDown
		}
		call.Done(Reply{SessionID: c.session.Load(), Err: err})
	}
}

// settle reads the answer to a call and hands it over.
func (c *conn) settle(h wire.ReplyHeader, size int) error {
	r := Reply{Zxid: h.Zxid, SessionID: c.session.Load(), Code: h.Err}
	call := c.take(h.Xid)
	if call == nil {
		call = &Call{Done: func(Reply) {}} // of no request: read over it
	}
	frame := sizeLen + size
	switch {
	case size > MaxAnswer:
		r.Err = ErrTooLong
	case frame <= readBuffer:
		b, err := c.br.Peek(frame)
		if err != nil {
			c.lost(call)
			return err
		}
		r.Body = b[sizeLen+replyHead:]
	default:
		return c.long(call, r, size)
	}
	call.Done(r)
	_, err := c.br.Discard(frame)
	return err
}

// long hands over an answer that the buffer does not hold.
func (c *conn) long(call *Call, r Reply, size int) error {
	if _, err := c.br.Discard(sizeLen + replyHead); err != nil {
		c.lost(call)
		return err
	}
	var err error
	if r.Body, err = wire.ReadBody(c.br, nil, int32(size-replyHead), MaxAnswer); err != nil {
		c.lost(call)
		return err
	}
	call.Done(r)
	return nil
}

// lost answers a call whose answer broke off.
func (c *conn) lost(call *Call) { call.Done(Reply{SessionID: c.session.Load(), Err: ErrDown}) }
