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
// and event, one a line. The server has to be fresh and nobody else's, with a tick of 500 ms.
//
// Which scenes it has depends on the server's settings: of the setting named "usual", most.
//
// What may differ between two servers that behave alike is made equal: zxids count from the
// first session's, session ids have the speaker's name, times are left out, and lists without
// an order are sorted. Nothing else is.
func Transcript(t *testing.T, addr string, setting Setting) []string {
	t.Helper()
	s := &scribe{t: t, addr: addr, names: map[int64]string{}, log: []string{"== first"}}
	first := s.voice("first")
	first.connect(wire.ConnectRequest{Timeout: 1})
	s.base = first.lastZxid()
	s.hangUp()
	for _, scene := range setting.scenes {
		s.log = append(s.log, "== "+scene.name)
		scene.play(s)
		s.hangUp()
	}
	return s.log
}

// scribe writes the conversation down.
type scribe struct {
	t      *testing.T
	addr   string
	base   int64            // the zxid that others are told from
	names  map[int64]string // of sessions
	masked bool             // whether zxids are left out
	voices []*voice
	log    []string
}

// voice is one connection of the conversation. Unlike a peer's, its answers are written down
// and not judged.
type voice struct {
	*link
	scribe   *scribe
	name     string
	session  int64
	password []byte
	xid      int32
	asked    map[int32]wire.Op
}

// voice connects, without a session yet.
func (s *scribe) voice(name string) *voice {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) { // the server has closed it already
		var other net.Conn
		conn, other = net.Pipe()
		err = errors.Join(other.Close(), conn.Close())
	}
	require.NoError(s.t, err)
	v := &voice{link: newLink(conn), scribe: s, name: name, asked: map[int32]wire.Op{}}
	s.voices = append(s.voices, v)
	return v
}

// open is a voice with a session.
func (s *scribe) open(name string) *voice {
	s.t.Helper()
	v := s.voice(name)
	v.connect(wire.ConnectRequest{Timeout: 10_000})
	return v
}

// hangUp ends the scene's connections and then its sessions, so that none expires in the midst
// of another scene.
func (s *scribe) hangUp() {
	s.t.Helper()
	for _, v := range s.voices {
		v.conn.Close()
	}
	closed := map[int64]bool{0: true}
	for _, v := range s.voices {
		if !closed[v.session] {
			closed[v.session] = true
			v.closeElsewhere()
		}
	}
	s.voices = nil
}

// closeElsewhere closes the session over another connection. Where connections are limited, the server has to see first
// that others are gone.
func (v *voice) closeElsewhere() {
	t := v.scribe.t
	t.Helper()
	var l *link
	var resp wire.ConnectResponse
	soon(t, "a connection to close "+v.name+" by", func() bool {
		conn, err := net.DialTimeout("tcp", v.scribe.addr, patience)
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
		v.say("session gone")
		return
	}
	require.NoError(t, l.write(wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}))
	_, err := l.read()
	require.NoError(t, err)
}

func (v *voice) say(format string, args ...any) {
	v.scribe.log = append(v.scribe.log, v.name+": "+shortened(fmt.Sprintf(format, args...)))
}

// longestLine keeps a report of differences readable.
const longestLine = 600

func shortened(line string) string {
	if len(line) <= longestLine {
		return line
	}
	return fmt.Sprintf("%s... %d bytes, CRC %08x", line[:longestLine/4], len(line), crc32.ChecksumIEEE([]byte(line)))
}

// connect writes down how the server answers a connect request.
func (v *voice) connect(req wire.ConnectRequest) {
	v.scribe.t.Helper()
	resp, err := v.link.connect(req)
	if err != nil {
		v.say("connect: %s", end(err))
		return
	}
	v.session, v.password = resp.Session, resp.Password
	if v.session != 0 && v.scribe.names[v.session] == "" {
		v.scribe.names[v.session] = v.name
	}
	zeroes := strings.Count(string(resp.Password), "\x00") == len(resp.Password)
	v.say("connect: protocol %d timeout %d session %s password of %d, zeroes %v, read-only %v, short %v", resp.Protocol,
		resp.Timeout, v.scribe.owner(resp.Session), len(resp.Password), zeroes, resp.ReadOnly, resp.Short)
}

// again asks for this voice's session.
func (v *voice) again() wire.ConnectRequest {
	return wire.ConnectRequest{Timeout: 10_000, Session: v.session, Password: v.password}
}

// lastZxid is what the server has processed last.
func (v *voice) lastZxid() int64 {
	v.scribe.t.Helper()
	require.NoError(v.scribe.t, v.write(wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}))
	b, err := v.read()
	require.NoError(v.scribe.t, err)
	d := wire.NewDecoder(b)
	var h wire.ReplyHeader
	h.Decode(&d)
	require.Equal(v.scribe.t, wire.XidPing, h.Xid)
	return h.Zxid
}

// do sends a request and writes down all that comes up to its reply.
func (v *voice) do(op wire.Op, body wire.Request) {
	v.xid++
	v.doAs(v.xid, op, body)
}

func (v *voice) doAs(xid int32, op wire.Op, body wire.Request) {
	v.scribe.t.Helper()
	v.asked[xid] = op
	if err := v.write(wire.RequestHeader{Xid: xid, Op: op}, body); err != nil {
		v.say("closed") // before it was all sent
		return
	}
	for v.hear() {
	}
}

// settle writes down the events that have arrived; a ping marks their end.
func (v *voice) settle() { v.doAs(wire.XidPing, wire.OpPing, &wire.EmptyRequest{}) }

// hear writes down one frame; it is true for an event.
func (v *voice) hear() bool {
	b, err := v.read()
	if err != nil {
		v.say("%s", end(err))
		return false
	}
	d := wire.NewDecoder(b)
	var h wire.ReplyHeader
	h.Decode(&d)
	if h.Xid == wire.XidNotify {
		var e wire.WatchEvent
		e.Decode(&d)
		v.say("  event %v %s, state %d, zxid %d, code %d%s", e.Type, e.Path, e.State, h.Zxid, h.Err, rest(&d))
		return true
	}
	op := v.asked[h.Xid]
	text := v.scribe.describe(op, h.Err, &d)
	if !leavesResults(op, h.Err) {
		text += rest(&d)
	}
	v.say("%v: xid %d zxid %s %v %s", op, h.Xid, v.scribe.zxid(h.Zxid), h.Err, text)
	return false
}
