package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// peer is a session over one connection, without a client library. Only one goroutine may use it.
// An unexpected error ends the test.
type peer struct {
	*link
	t        *testing.T
	session  int64
	password []byte
	timeout  time.Duration
	xid      int32
	events   []wire.WatchEvent // that have arrived and not been asked for
}

// reply is the answer to a request.
type reply struct {
	wire.ReplyHeader
	body   wire.Decoder
	before int // events that arrived before it and after the request
}

// sessionTimeout is the session timeout that peers ask for, except in tests of expiry.
const sessionTimeout = 10 * time.Second

// peer opens a session on the i-th server. The session is closed when the test ends, at the latest.
func (s *fixture) peer(t *testing.T, i int) *peer {
	t.Helper()
	return s.resume(t, i, wire.ConnectRequest{Timeout: millis(sessionTimeout)})
}

// resume connects with the test's own connect request, which the server must grant.
func (s *fixture) resume(t *testing.T, i int, req wire.ConnectRequest) *peer {
	t.Helper()
	p := s.bare(t, i)
	resp, err := p.connect(req)
	require.NoError(t, err)
	require.NotZero(t, resp.Session, "the session was refused")
	p.session, p.password = resp.Session, resp.Password
	p.timeout = time.Duration(resp.Timeout) * time.Millisecond
	return p
}

// bare connects without a session.
func (s *fixture) bare(t *testing.T, i int) *peer {
	t.Helper()
	conn, err := s.target.dial("tcp", s.server(i), patience)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &peer{link: newLink(conn), t: t}
}

// again returns the connect request that asks for the peer's session on a new connection.
func (p *peer) again() wire.ConnectRequest {
	return wire.ConnectRequest{Timeout: millis(p.timeout), Session: p.session, Password: p.password}
}

// send writes a request and returns its xid.
func (p *peer) send(op wire.Op, body wire.Request) int32 {
	p.t.Helper()
	p.xid++
	p.sendAs(p.xid, op, body)
	return p.xid
}

func (p *peer) sendAs(xid int32, op wire.Op, body wire.Request) {
	p.t.Helper()
	require.NoError(p.t, p.write(wire.RequestHeader{Xid: xid, Op: op}, body))
}

// next reads one frame: a reply, or an event, which it keeps.
func (p *peer) next() (r reply, isReply bool) {
	p.t.Helper()
	body, err := p.read()
	require.NoError(p.t, err)
	r.body = wire.NewDecoder(body)
	r.Decode(&r.body)
	if r.Xid != wire.XidNotify {
		require.NoError(p.t, r.body.Err())
		return r, true
	}
	var e wire.WatchEvent
	e.Decode(&r.body)
	require.NoError(p.t, r.body.Err())
	p.events = append(p.events, e)
	return reply{}, false
}

// answer reads up to the next reply, which must be that of xid.
func (p *peer) answer(xid int32) reply {
	p.t.Helper()
	seen := len(p.events)
	for {
		if r, is := p.next(); is {
			require.Equal(p.t, xid, r.Xid)
			r.before = len(p.events) - seen
			return r
		}
	}
}

// do sends a request and waits for its reply.
func (p *peer) do(op wire.Op, body wire.Request) reply {
	p.t.Helper()
	return p.answer(p.send(op, body))
}

// doOK sends a request, which must succeed, and waits for its reply.
func (p *peer) doOK(op wire.Op, body wire.Request) reply {
	p.t.Helper()
	r := p.do(op, body)
	require.Equal(p.t, wire.OK, r.Err, "%v %+v", op, body)
	return r
}

// code sends a request, waits for its reply, and returns its error code.
func (p *peer) code(op wire.Op, body wire.Request) wire.Code {
	p.t.Helper()
	return p.do(op, body).Err
}

// event waits for the next event.
func (p *peer) event() wire.WatchEvent {
	p.t.Helper()
	for len(p.events) == 0 {
		_, isReply := p.next()
		require.False(p.t, isReply, "a reply that nothing was asked for")
	}
	e := p.events[0]
	p.events = p.events[1:]
	return e
}

// wantEvents waits for events, which must be these, in this order.
func (p *peer) wantEvents(want ...wire.WatchEvent) {
	p.t.Helper()
	for i, w := range want {
		w.State = wire.StateSyncConnected
		require.Equal(p.t, w, p.event(), "event %d", i)
	}
}

// wantNoEvents requires that no earlier change has caused a further event. It waits for the reply
// to a transaction without effect, which comes after the events.
func (p *peer) wantNoEvents() {
	p.t.Helper()
	p.sync("/")
	require.Empty(p.t, p.events)
}

// wantClosed requires that the server closes the connection without another frame.
func (p *peer) wantClosed() {
	p.t.Helper()
	body, err := p.read()
	require.Error(p.t, err, "got %x", body)
	require.NotErrorIs(p.t, err, errTimeout, "the connection is still open")
}

// close ends the session.
func (p *peer) close() {
	p.t.Helper()
	p.doOK(wire.OpCloseSession, &wire.EmptyRequest{})
	p.conn.Close()
}

func millis(d time.Duration) int32 { return int32(d.Milliseconds()) }
