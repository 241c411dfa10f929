package conformance

import (
	"math"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func talkClose(s *transcript) {
	a, b, c := s.open("a"), s.open("b"), s.open("c")
	c.create("/close", "", 0)
	c.create("/close/dir", "", 0)
	a.create("/close/e", "", wire.FlagEphemeral)
	a.create("/close/f", "", wire.FlagEphemeral)
	a.create("/close/dir/g", "", wire.FlagEphemeral)
	b.create("/close/other", "", wire.FlagEphemeral)
	b.watchData("/close/e")
	b.watchChildren("/close")
	b.watchChildren("/close/dir")
	b.addWatch("/close", wire.AddWatchPersistentRecursive)
	a.close()
	a.recordFrame()
	s.unordered(b.recordEvents)
	c.list("/close")
	c.list("/close/dir")
	late := s.newConnection("late")
	late.connect(a.again())
	late.recordFrame()
	// Here further requests follow the close without a wait.
	for _, op := range []wire.Op{wire.OpCloseSession, wire.OpExists} {
		v := s.open("behind")
		v.asked[1], v.asked[2] = wire.OpCloseSession, op
		require.NoError(s.t, v.write(wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}))
		v.recordFrame()
		v.recordFrame()
	}
	empty := s.open("empty")
	empty.close()
	empty.recordFrame()
	c.recordEvents()
}

func talkMove(s *transcript) {
	a, w := s.open("a"), s.open("w")
	a.create("/move", "", 0)
	a.create("/move/e", "", wire.FlagEphemeral)
	a.watchData("/move")
	a.auth("digest", "alice:a")
	w.addWatch("/move", wire.AddWatchPersistentRecursive)
	b := s.newConnection("b")
	b.connect(a.again())
	a.recordFrame()
	b.whoAmI()
	b.exists("/move/e")
	w.set("/move", "x", -1)
	b.recordEvents()
	b.create("/move/f", "", wire.FlagEphemeral)
	short := s.newConnection("short")
	req := b.again()
	req.Timeout, req.Short = 1, true
	short.connect(req)
	b.recordFrame()
	short.list("/move")
	short.close()
	short.recordFrame()
	s.unordered(w.recordEvents)
}

func talkRefusedSessions(s *transcript) {
	a := s.open("a")
	a.create("/refused", "", wire.FlagEphemeral)
	for _, password := range [][]byte{make([]byte, wire.PasswordSize), {}, nil, []byte("short"), make([]byte, 100)} {
		v := s.newConnection("v")
		v.connect(wire.ConnectRequest{Timeout: 4000, Session: a.session, Password: password})
		v.recordFrame()
		a.recordEvents() // was the rightful connection closed too?
		a = s.resumed(a)
	}
	a.exists("/refused")
	for _, id := range []int64{1, -1, math.MaxInt64, math.MinInt64, a.session + 1} {
		v := s.newConnection("v")
		v.connect(wire.ConnectRequest{Timeout: 4000, Session: id, Password: a.password})
		v.recordFrame()
	}
	for _, zxid := range []int64{1 << 60, math.MaxInt64, -1, math.MinInt64} {
		v := s.newConnection("v")
		v.connect(wire.ConnectRequest{Timeout: 4000, LastZxid: zxid})
	}
	v := s.newConnection("v")
	req := a.again()
	req.LastZxid = 1 << 60
	v.connect(req)
	a.recordEvents() // sent away before the session is looked at
}

// resumed returns a new connection with the session of v.
func (s *transcript) resumed(v *connection) *connection {
	s.t.Helper()
	again := s.newConnection(v.name)
	again.connect(v.again())
	return again
}

func talkMalformed(s *transcript) {
	frame := func(name string, b ...byte) {
		s.log = append(s.log, "frame "+name)
		v := s.open("v")
		require.NoError(s.t, v.writeRaw(b))
		v.recordFrame()
	}
	frame("of negative length", 0xff, 0xff, 0xff, 0xff)
	frame("of no length", 0, 0, 0, 0)
	frame("with half a header", 0, 0, 0, 4, 0, 0, 0, 1)
	frame("with a header alone: exists", 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 3)
	frame("with a header alone: create", 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1)
	frame("with a header alone: multi", 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 14)
	frame("with a header alone: auth", 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 100)
	frame("with a path too long", 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9)
	frame("with a path of length -1", 0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 0)
	frame("with a path of length -2", 0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xfe, 0)
	frame("with more behind: ping", 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11, 1)
	// Two operations are left out: createSession, which opens a session that no client knows, and
	// SASL.
	for _, op := range []wire.Op{77, -1, 0, 10, 1000, math.MinInt32} {
		v := s.open("v")
		v.do(op, at("/"))
		v.recordFrame() // the end of the connection; a ping could still be answered before it
	}
	v := s.open("v")
	v.do(wire.OpReconfig, at("/"))
	v.recordEvents()
	first := func(name string, b ...byte) {
		s.log = append(s.log, "first frame "+name)
		v := s.newConnection("v")
		require.NoError(s.t, v.writeRaw(b))
		v.recordFrame()
	}
	first("that ends early", 0, 0, 0, 4, 0, 0, 0, 0)
	first("of no length", 0, 0, 0, 0)
	first("of negative length", 0x80, 0, 0, 0)
}

func talkLarge(s *transcript) {
	a := s.open("a")
	a.create("/large", "", 0)
	overhead := emptyCreation("/large/x")
	for _, frame := range []int{wire.MaxFrame - 1, wire.MaxFrame, wire.MaxFrame + 1} {
		v := s.open("v")
		v.create("/large/x", strings.Repeat("x", frame-overhead), 0)
		v.conn.Close()
		a.exists("/large/x")
		a.delete("/large/x", -1)
	}
	a.create("/large/"+strings.Repeat("n", 1000), "", 0)
	for range 200 {
		a.create("/large/"+strings.Repeat("n", 900)+"-", "", wire.FlagSequential)
	}
	a.list("/large")
}
