package conformance

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Transcript holds a long raw conversation with the server at addr and returns every answer
// and event, one a line. The server must be new, without other clients, and have a tick of 500 ms.
//
// The topics depend on the server's setting. Most of them belong to the setting named "usual".
//
// Some values may differ between two servers that behave alike, so they are made equal: zxids count
// from that of the first session, session ids are replaced by the connection's name, times are left
// out, and lists without an order are sorted. All other values are returned unchanged.
func Transcript(t *testing.T, addr string, setting Setting) []string {
	t.Helper()
	s := &transcript{t: t, addr: addr, names: map[int64]string{}, log: []string{"== first"}}
	first := s.newConnection("first")
	first.connect(wire.ConnectRequest{Timeout: 1})
	s.base = first.lastZxid()
	s.closeConnections()
	for _, topic := range setting.topics {
		s.log = append(s.log, "== "+topic.name)
		topic.talk(s)
		s.closeConnections()
	}
	return s.log
}

// transcript holds the conversation and records it.
type transcript struct {
	t           *testing.T
	addr        string
	base        int64            // the zxid from which others are counted
	names       map[int64]string // of sessions
	hidesZxids  bool             // whether zxids are left out
	connections []*connection
	log         []string
}

// connection is one connection of the conversation. It records answers and does not check them; a
// peer checks them.
type connection struct {
	*link
	transcript *transcript
	name       string
	session    int64
	password   []byte
	xid        int32
	asked      map[int32]wire.Op
}

// newConnection connects. It does not open a session.
func (s *transcript) newConnection(name string) *connection {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) { // the server has closed it already
		var other net.Conn
		conn, other = net.Pipe()
		err = errors.Join(other.Close(), conn.Close())
	}
	require.NoError(s.t, err)
	v := &connection{link: newLink(conn), transcript: s, name: name, asked: map[int32]wire.Op{}}
	s.connections = append(s.connections, v)
	return v
}

// open returns a connection with a new session.
func (s *transcript) open(name string) *connection {
	s.t.Helper()
	v := s.newConnection(name)
	v.connect(wire.ConnectRequest{Timeout: 10_000})
	return v
}

// closeConnections ends the topic's connections and then its sessions, so that no session expires
// during another topic.
func (s *transcript) closeConnections() {
	s.t.Helper()
	for _, v := range s.connections {
		v.conn.Close()
	}
	closed := map[int64]bool{0: true}
	for _, v := range s.connections {
		if !closed[v.session] {
			closed[v.session] = true
			v.closeSession()
		}
	}
	s.connections = nil
}

// closeSession closes the session over another connection. If the server limits connections, it
// must notice first that the others have ended.
func (v *connection) closeSession() {
	t := v.transcript.t
	t.Helper()
	var l *link
	var resp wire.ConnectResponse
	soon(t, "a connection to close "+v.name+" by", func() bool {
		conn, err := net.DialTimeout("tcp", v.transcript.addr, patience)
		if err != nil {
			return false
		}
		l = newLink(conn)
		if resp, err = l.connect(v.again()); err != nil {
			conn.Close()
		}
		return err == nil
	})
	defer l.conn.Close()
	if resp.Session == 0 {
		v.record("session gone")
		return
	}
	require.NoError(t, l.write(wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}))
	_, err := l.read()
	require.NoError(t, err)
}

func (v *connection) record(format string, args ...any) {
	v.transcript.log = append(v.transcript.log, v.name+": "+shortened(fmt.Sprintf(format, args...)))
}

// longestLine bounds the lines, so that a report of differences is readable.
const longestLine = 600

func shortened(line string) string {
	if len(line) <= longestLine {
		return line
	}
	return fmt.Sprintf("%s... %d bytes, CRC %08x", line[:longestLine/4], len(line), crc32.ChecksumIEEE([]byte(line)))
}

// connect sends a connect request and records the answer.
func (v *connection) connect(req wire.ConnectRequest) {
	v.transcript.t.Helper()
	resp, err := v.link.connect(req)
	if err != nil {
		v.record("connect: %s", end(err))
		return
	}
	v.session, v.password = resp.Session, resp.Password
	if v.session != 0 && v.transcript.names[v.session] == "" {
		v.transcript.names[v.session] = v.name
	}
	zeroes := strings.Count(string(resp.Password), "\x00") == len(resp.Password)
	v.record("connect: protocol %d timeout %d session %s password of %d, zeroes %v, read-only %v, short %v",
		resp.Protocol,
		resp.Timeout, v.transcript.owner(resp.Session), len(resp.Password), zeroes, resp.ReadOnly, resp.Short)
}

// again returns the connect request that asks for this connection's session.
func (v *connection) again() wire.ConnectRequest {
	return wire.ConnectRequest{Timeout: 10_000, Session: v.session, Password: v.password}
}

// lastZxid returns the zxid of the latest transaction that the server has processed.
func (v *connection) lastZxid() int64 {
	v.transcript.t.Helper()
	require.NoError(v.transcript.t, v.write(wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}))
	b, err := v.read()
	require.NoError(v.transcript.t, err)
	d := wire.NewDecoder(b)
	var h wire.ReplyHeader
	h.Decode(&d)
	require.Equal(v.transcript.t, wire.XidPing, h.Xid)
	return h.Zxid
}

// do sends a request, and records all frames up to its reply.
func (v *connection) do(op wire.Op, body wire.Request) {
	v.xid++
	v.doAs(v.xid, op, body)
}

func (v *connection) doAs(xid int32, op wire.Op, body wire.Request) {
	v.transcript.t.Helper()
	v.asked[xid] = op
	if err := v.write(wire.RequestHeader{Xid: xid, Op: op}, body); err != nil {
		v.record("closed") // before it was all sent
		return
	}
	for v.recordFrame() {
	}
}

// recordEvents records the events that have arrived. It sends a ping, whose answer comes after
// them.
func (v *connection) recordEvents() { v.doAs(wire.XidPing, wire.OpPing, &wire.EmptyRequest{}) }

// recordFrame reads and records one frame. It returns true if the frame is an event.
func (v *connection) recordFrame() bool {
	b, err := v.read()
	if err != nil {
		v.record("%s", end(err))
		return false
	}
	d := wire.NewDecoder(b)
	var h wire.ReplyHeader
	h.Decode(&d)
	if h.Xid == wire.XidNotify {
		var e wire.WatchEvent
		e.Decode(&d)
		v.record("  event %v %s, state %d, zxid %d, code %d%s", e.Type, e.Path, e.State, h.Zxid, h.Err, rest(&d))
		return true
	}
	op := v.asked[h.Xid]
	text := v.transcript.describe(op, h.Err, &d)
	if !leavesResults(op, h.Err) {
		text += rest(&d)
	}
	v.record("%v: xid %d zxid %s %v %s", op, h.Xid, v.transcript.zxid(h.Zxid), h.Err, text)
	return false
}
