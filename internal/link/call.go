package link

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Errors of a request.
var (
	// ErrDown is a reply's error when there is no connection that takes requests, or when it ended before
	// the answer: whether the request was carried out is not known then.
	ErrDown = errors.New("link: no connection")
	// ErrTooLong is a reply's error when the answer is longer than MaxAnswer.
	ErrTooLong = errors.New("link: the answer is too long")
)

// Call is one request and what is to be done with its answer.
type Call struct {
	Op   wire.Op
	Body wire.Request
	// Done is called once, with the answer or with the connection's end, from whichever goroutine knows of it,
	// and perhaps before Send has returned. It must not block.
	Done func(Reply)
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
	// Err is ErrDown or ErrTooLong; there is no answer then.
	Err error
}

// firstXid is the least number of a Call. The library counts the few requests of its own from 1.
const firstXid = 1 << 30

// Send puts requests into the connection's queue, in this order: what is sent later reaches the server
// later. Without an admitted connection it returns false, and they have been answered with ErrDown.
func (m *Monitor) Send(calls ...*Call) (queued bool) {
	c := m.admitting(calls[0].Op)
	if c == nil || !c.send(calls) {
		for _, call := range calls {
			call.Done(Reply{Err: ErrDown})
		}
		return false
	}
	return true
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

// Admit lets requests pass on the connection of a generation. Until then it takes credentials alone,
// so that nothing is asked without them.
func (m *Monitor) Admit(generation int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cur != nil && m.cur.generation == generation {
		m.cur.admitted = true
	}
}

// saw notes the newest transaction that a server has told of.
func (m *Monitor) saw(zxid int64) {
	for {
		seen := m.seen.Load()
		if zxid <= seen || m.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// send encodes the calls and queues them as one, unless the connection has ended.
func (c *conn) send(calls []*Call) bool {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.frames.Reset()
	xid, ok := c.expect(calls)
	if !ok {
		return false
	}
	for _, call := range calls {
		mark := c.frames.BeginFrame()
		wire.RequestHeader{Xid: xid, Op: call.Op}.Encode(&c.frames)
		call.Body.Encode(&c.frames)
		c.frames.EndFrame(mark)
		xid = nextXid(xid)
	}
	n := int64(len(calls))
	if err := c.out.put(c.frames.Bytes(), c.unanswered.Add(n) == n); err != nil {
		c.end(err) // which answers the calls
	}
	if c.frames.Len() > keptBuffer {
		c.frames = wire.Encoder{}
	}
	return true
}

// expect numbers the calls and has their answers awaited. ok is false when the connection has ended.
func (c *conn) expect(calls []*Call) (first int32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return 0, false
	}
	first = c.xid
	for _, call := range calls {
		c.pending[c.xid] = call
		c.xid = nextXid(c.xid)
	}
	return first, true
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
	c.pending = nil
	c.mu.Unlock()
	for _, call := range pending {
		call.Done(Reply{SessionID: c.session.Load(), Err: ErrDown})
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
