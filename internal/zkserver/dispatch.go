package zkserver

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// request is the request being worked on.
type request struct {
	conn  *conn
	head  wire.RequestHeader
	body  wire.Decoder
	reply *wire.Encoder // the answer's body

	path   string // what it is about, for those who look on
	data   []byte // what it writes, likewise
	result string // the path created
	parts  []Request
}

func (r *request) decode(body wire.Request) bool {
	body.Decode(&r.body)
	return r.body.Err() == nil
}

// takesNull tells the operations to which a null path is an empty one. The real
// server makes nothing of it in all others.
func takesNull(op wire.Op) bool {
	switch op {
	case wire.OpSetData, wire.OpSetACL, wire.OpCheck, wire.OpSync, wire.OpGetEphemerals, wire.OpAddWatch, wire.OpRemoveWatches:
		return true
	}
	return false
}

// handler does a request and appends the answer's body to r.reply; what it has
// appended is dropped when it returns an error.
type handler func(*Server, *request) wire.Code

// noReply is a handler's word for silence. No code of the protocol is positive.
const noReply wire.Code = 1

var handlers = map[wire.Op]handler{
	wire.OpCreate:               (*Server).write,
	wire.OpCreate2:              (*Server).write,
	wire.OpCreateContainer:      (*Server).write,
	wire.OpCreateTTL:            (*Server).write,
	wire.OpDelete:               (*Server).write,
	wire.OpSetData:              (*Server).write,
	wire.OpSetACL:               (*Server).write,
	wire.OpCheck:                (*Server).checkAlone,
	wire.OpMulti:                (*Server).multi,
	wire.OpReconfig:             (*Server).reconfig,
	wire.OpDeleteContainer:      (*Server).deleteContainer,
	wire.OpMultiRead:            (*Server).multiRead,
	wire.OpExists:               (*Server).exists,
	wire.OpGetData:              (*Server).getData,
	wire.OpGetACL:               (*Server).getACL,
	wire.OpGetChildren:          (*Server).getChildren,
	wire.OpGetChildren2:         (*Server).getChildren2,
	wire.OpGetAllChildrenNumber: (*Server).getAllChildrenNumber,
	wire.OpGetEphemerals:        (*Server).getEphemerals,
	wire.OpSync:                 (*Server).sync,
	wire.OpPing:                 (*Server).ping,
	wire.OpWhoAmI:               (*Server).whoAmI,
	wire.OpSetWatches:           (*Server).setWatches,
	wire.OpSetWatches2:          (*Server).setWatches,
	wire.OpAddWatch:             (*Server).addWatch,
	wire.OpCheckWatches:         (*Server).checkWatches,
	wire.OpRemoveWatches:        (*Server).removeWatches,
	wire.OpCloseSession:         (*Server).closeSession,
}

// enter locks the server for a connection, after a freeze if there is one. It
// returns false, unlocked, when the connection is over.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	for s.frozen && !s.closed && !c.dead {
		s.thawed.Wait()
	}
	if s.closed || c.dead {
		s.mu.Unlock()
		return false
	}
	return true
}

// serve does the request in the frame; false ends the connection.
func (s *Server) serve(c *conn, frame []byte) bool {
	if !s.enter(c) {
		return false
	}
	defer s.mu.Unlock()
	s.countReceived(c)
	r := &s.request
	*r = request{conn: c, body: wire.NewServerDecoder(frame), reply: &s.answer}
	if r.head.Decode(&r.body); r.body.Err() != nil {
		return false
	}
	if !takesNull(r.head.Op) {
		r.body.RefuseNullPaths()
	}
	handle, known := handlers[r.head.Op]
	if known || r.head.Op == wire.OpAuth {
		s.requests[r.head.Op]++
	}
	if r.head.Op == wire.OpAuth {
		return s.authenticate(r)
	}
	s.touch(c.session)
	if !known {
		s.reply(c, wire.ReplyHeader{Xid: r.head.Xid, Zxid: -1, Err: wire.Unimplemented})
		s.finish(c)
		return false
	}
	if s.throttles(r) {
		handle = throttled
	}
	return s.answerWith(r, handle)
}

// answerWith runs the handler and sends its answer. Watch events that the
// request gave rise to are on their way by then.
func (s *Server) answerWith(r *request, handle handler) bool {
	s.answer.Reset()
	mark := s.answer.BeginFrame()
	at := s.answer.Len()
	wire.ReplyHeader{}.Encode(&s.answer)
	code := handle(s, r)
	if code != wire.OK {
		s.answer.Truncate(at + wire.ReplyHeaderSize)
	}
	wire.ReplyHeader{Xid: r.head.Xid, Zxid: s.zxid, Err: code}.EncodeAt(&s.answer, at)
	s.answer.EndFrame(mark)

	delay, drop := s.interfere(r, code)
	if !drop && code != noReply {
		s.send(r.conn, s.answer.Bytes(), delay)
	}
	if drop || r.head.Op == wire.OpCloseSession {
		s.finish(r.conn)
	}
	if s.answer.Len() > keepBuffer {
		s.answer = wire.Encoder{}
	}
	return !r.conn.dead
}

func (s *Server) reply(c *conn, h wire.ReplyHeader) {
	s.answer.Reset()
	mark := s.answer.BeginFrame()
	h.Encode(&s.answer)
	s.answer.EndFrame(mark)
	s.send(c, s.answer.Bytes(), 0)
}

func (s *Server) countReceived(c *conn) {
	s.received++
	c.received++
}

// send queues a frame, and cuts a client off that leaves too much unread.
func (s *Server) send(c *conn, frame []byte, delay time.Duration) {
	if c.dead {
		return
	}
	s.sent++
	c.sent++
	if !c.queue(frame, delay, s.config.OutgoingLimit) {
		s.config.Logger.Warn("client does not read", "remote", c.ids[0].ID)
		s.cut(c)
	}
}

// cut closes a connection at once, with what it has not been sent yet.
func (s *Server) cut(c *conn) {
	s.detach(c)
	c.close()
}

// finish closes a connection after what is queued for it.
func (s *Server) finish(c *conn) {
	s.detach(c)
	c.finish()
}

// drop is the reader's goodbye.
func (s *Server) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.dead {
		s.cut(c)
	}
}

// detach ends a connection's part in the state. Its session lives on.
func (s *Server) detach(c *conn) {
	if c.dead {
		return
	}
	c.dead = true
	s.alive--
	s.dataWatches.drop(c)
	s.childWatches.drop(c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
}

// releaseLate lets delayed answers go, but not from a frozen server.
func (s *Server) releaseLate(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.frozen {
		c.release()
	}
}
