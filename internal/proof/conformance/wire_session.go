package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireSession = []behaviour{
	{"the timeout is limited to the server's bounds", timeoutIsBounded},
	{"a short connect request gets a short response", shortConnectRequest},
	{"a wrong password is refused, and ends the old connection", wrongPasswordIsRefused},
	{"an unknown session is refused", unknownSessionIsRefused},
	{"a client that has seen a later zxid is refused", futureZxidIsRefused},
	{"a session moves to a new connection", sessionMovesToConnection},
	{"a session that has moved to another server ends on the old one", sessionMovesToServer},
	{"a client with the password can close the session", passwordCloses},
	{"all ephemerals of a session are deleted under one zxid", ephemeralsAreDeletedTogether},
	{"a session expires, and not early", sessionExpires},
	{"pings keep a session alive", pingsKeepSession},
	{"a write in an expired session's connection fails", expiredSessionCannotWrite},
	{"an unknown request is answered, then the connection closed", unknownRequestCloses},
	{"a frame that is too large ends the connection", oversizeFrameCloses},
}

func timeoutIsBounded(t *testing.T, s *fixture) {
	least := s.resume(t, 0, wire.ConnectRequest{Timeout: 1}).timeout
	most := s.resume(t, 0, wire.ConnectRequest{Timeout: 1 << 30}).timeout
	require.Equal(t, 10*least, most, "2 and 20 ticks")
	between := least + time.Millisecond
	require.Equal(t, between, s.resume(t, 0, wire.ConnectRequest{Timeout: millis(between)}).timeout)
}

func shortConnectRequest(t *testing.T, s *fixture) {
	for _, short := range []bool{true, false} {
		p := s.bare(t, 0)
		resp, err := p.connect(wire.ConnectRequest{Timeout: 4000, Short: short})
		require.NoError(t, err)
		require.Equal(t, short, resp.Short)
		require.Len(t, resp.Password, wire.PasswordSize)
		require.Zero(t, resp.Protocol)
		p.doOK(wire.OpCloseSession, &wire.EmptyRequest{})
		p.wantClosed()
	}
}

func wrongPasswordIsRefused(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	req := p.again()
	req.Password = make([]byte, wire.PasswordSize)
	wantRefused(t, s, 0, req)
	p.wantClosed()
	s.resume(t, 0, p.again()).sync(s.root)
}

func unknownSessionIsRefused(t *testing.T, s *fixture) {
	for i := range s.target.Servers {
		wantRefused(t, s, i, wire.ConnectRequest{
			Timeout: 4000, Session: 0x7e57ed, Password: make([]byte, wire.PasswordSize),
		})
	}
}

// wantRefused requires that a server answers with session 0 and closes the connection.
func wantRefused(t *testing.T, s *fixture, server int, req wire.ConnectRequest) {
	t.Helper()
	p := s.bare(t, server)
	resp, err := p.connect(req)
	require.NoError(t, err)
	require.Zero(t, resp.Session)
	require.Zero(t, resp.Timeout)
	p.wantClosed()
}

func futureZxidIsRefused(t *testing.T, s *fixture) {
	p := s.bare(t, 0)
	_, err := p.connect(wire.ConnectRequest{Timeout: 4000, LastZxid: 1 << 60})
	require.Error(t, err)
	require.NotErrorIs(t, err, errTimeout)
}

func sessionMovesToConnection(t *testing.T, s *fixture) {
	old := s.peer(t, 0)
	old.create(s.path("e"), "", wire.FlagEphemeral)
	anew := s.resume(t, 0, old.again())
	require.Equal(t, old.session, anew.session)
	require.Equal(t, old.password, anew.password)
	old.wantClosed()
	require.Equal(t, anew.session, anew.stat(s.path("e")).EphemeralOwner)
	anew.set(s.path("e"), "x")
}

func sessionMovesToServer(t *testing.T, s *fixture) {
	old := s.peer(t, 0)
	old.create(s.path("e"), "", wire.FlagEphemeral)
	anew := s.resume(t, 1, old.again())
	// If two requests of the session had the same number, a server might take the commit of the
	// other connection's write for the answer (docs/adr/0084).
	anew.xid = old.xid
	anew.sync(s.root)
	anew.set(s.path("e"), "x")
	require.Equal(t, anew.session, anew.stat(s.path("e")).EphemeralOwner)

	old.xid = anew.xid
	code, err := old.try(wire.OpSetData, setting(s.path("e"), "y", wire.AnyVersion))
	require.True(t, err != nil || code == wire.SessionMoved, "code %v", code)
	require.EqualValues(t, 1, anew.stat(s.path("e")).Version)
}

// try sends a request and returns the error code, or an error if the connection was closed.
func (p *peer) try(op wire.Op, body wire.Request) (wire.Code, error) {
	p.t.Helper()
	p.xid++
	if err := p.write(wire.RequestHeader{Xid: p.xid, Op: op}, body); err != nil {
		return 0, err
	}
	b, err := p.read()
	if errors.Is(err, errTimeout) {
		require.NoError(p.t, err, "neither an answer nor the connection's end")
	}
	if err != nil {
		return 0, err
	}
	d := wire.NewDecoder(b)
	var h wire.ReplyHeader
	h.Decode(&d)
	return h.Err, d.Err()
}

// passwordCloses checks that a client with a session's password can close the session, as a
// watchdog does with that of its dead parent.
func passwordCloses(t *testing.T, s *fixture) {
	owner, watcher := s.peer(t, 0), s.peer(t, 1)
	owner.create(s.path("e"), "", wire.FlagEphemeral)
	watcher.sync(s.root)
	watcher.doOK(wire.OpExists, watch(s.path("e")))
	closing := s.resume(t, 2, owner.again())
	closing.xid = owner.xid // as in sessionMovesToServer
	closing.close()
	watcher.wantEvents(deleted(s.path("e")))
	wantRefused(t, s, 2, owner.again())
}

func ephemeralsAreDeletedTogether(t *testing.T, s *fixture) {
	p, owner := s.pair(t)
	for _, dir := range []string{"a", "b", "c"} {
		p.create(s.path(dir), "", 0)
		owner.sync(s.root)
		owner.create(s.path(dir, "e"), "", wire.FlagEphemeral)
		owner.create(s.path(dir, "f"), "", wire.FlagEphemeral)
	}
	owner.close()
	p.sync(s.root)
	gone := p.stat(s.path("a")).Pzxid
	for _, dir := range []string{"a", "b", "c"} {
		require.Empty(t, p.children(s.path(dir)))
		require.Equal(t, gone, p.stat(s.path(dir)).Pzxid)
	}
}

func sessionExpires(t *testing.T, s *fixture) {
	watcher := s.peer(t, 0)
	owner, path, before := s.briefSession(t, 1, watcher)
	watcher.wantEvents(deleted(path))
	require.GreaterOrEqual(t, time.Since(before), owner.timeout, "never early")
	// The owner's server may apply the expiry later than the watcher's server. Then it closes each
	// of the session's connections without an answer, also one that asks for the session again.
	owner.wantClosed()
	wantRefused(t, s, 1, owner.again())
}

// briefSession opens a session with the shortest timeout on a server, creates a node of that
// session, and lets watcher watch the node. before is the time directly before the session's first
// request. On a slow machine the session may expire too early: then briefSession opens another one.
func (s *fixture) briefSession(t *testing.T, server int, watcher *peer) (owner *peer, path string, before time.Time) {
	t.Helper()
	for {
		owner = s.resume(t, server, wire.ConnectRequest{Timeout: 1})
		before = time.Now()
		path = s.path(fmt.Sprintf("of-%x", owner.session)) // watches on the former ones stay
		code, err := owner.try(wire.OpCreate, creation(path, "", wire.FlagEphemeral))
		if err != nil || code == wire.SessionExpired {
			continue
		}
		require.Equal(t, wire.OK, code)
		watcher.sync(s.root)
		if code := watcher.code(wire.OpExists, watch(path)); code != wire.NoNode {
			require.Equal(t, wire.OK, code)
			return owner, path, before
		}
	}
}

func pingsKeepSession(t *testing.T, s *fixture) {
	for !pingsInTime(t, s) {
		t.Log("the machine was too slow for pings in time: once more")
	}
}

// pingsInTime pings for three timeouts of a session, and requires that the session lives. It
// returns false if there was no ping for half a timeout or longer.
func pingsInTime(t *testing.T, s *fixture) bool {
	heard := time.Now()
	p, path, _ := s.briefSession(t, 1, s.peer(t, 0))
	var d wire.Decoder // of the latest answer's body
	inTime := func(xid int32, op wire.Op, body wire.Request) bool {
		asked := time.Now()
		err := p.write(wire.RequestHeader{Xid: xid, Op: op}, body)
		var answer []byte
		if err == nil {
			answer, err = p.read()
		}
		if time.Since(heard) >= p.timeout/2 {
			return false
		}
		heard = asked
		require.NoError(t, err)
		d = wire.NewDecoder(answer)
		var h wire.ReplyHeader
		h.Decode(&d)
		require.NoError(t, d.Err())
		require.Equal(t, xid, h.Xid)
		require.Equal(t, wire.OK, h.Err)
		return true
	}
	for end := time.Now().Add(3 * p.timeout); time.Now().Before(end); time.Sleep(p.timeout / 10) {
		if !inTime(wire.XidPing, wire.OpPing, &wire.EmptyRequest{}) {
			return false
		}
	}
	if !inTime(100, wire.OpSync, at(s.root)) || !inTime(101, wire.OpExists, look(path)) {
		return false
	}
	var st wire.Stat
	st.Decode(&d)
	require.NoError(t, d.Err())
	require.Equal(t, p.session, st.EphemeralOwner)
	return true
}

func expiredSessionCannotWrite(t *testing.T, s *fixture) {
	watcher := s.peer(t, 0)
	owner, path, _ := s.briefSession(t, 0, watcher)
	watcher.wantEvents(deleted(path))
	code, err := owner.try(wire.OpCreate, creation(s.path("late"), "", wire.FlagEphemeral))
	require.True(t, err != nil || code == wire.SessionExpired, "code %v", code)
	watcher.sync(s.root)
	_, is := watcher.exists(s.path("late"))
	require.False(t, is)
}

func unknownRequestCloses(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	require.Equal(t, wire.Unimplemented, p.code(77, at(s.root)))
	p.wantClosed()
}

func oversizeFrameCloses(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.doOK(wire.OpCreate, creation(s.path("large"), string(make([]byte, wire.MaxFrame-1000)), 0))
	p.xid++
	err := p.write(wire.RequestHeader{Xid: p.xid, Op: wire.OpCreate},
		creation(s.path("larger"), string(make([]byte, wire.MaxFrame+1)), 0))
	if err == nil { // else the server has closed before it was all written
		p.wantClosed()
	}
	s.resume(t, 0, p.again()).sync(s.root)
}
