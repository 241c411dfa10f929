package watchdog

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// testServer is a server with one session that has no connection.
type testServer struct {
	zk      *zkserver.Server
	access  Access
	session Session
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	zk, err := zkserver.New(zkserver.Config{})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	ln := listen(t)
	go func() { _ = zk.Serve(ln) }() // it ends when the server is closed
	g := &testServer{zk: zk, access: Access{Servers: []string{ln.Addr().String()}, DialTimeout: time.Minute}}
	g.session = g.openSession(t)
	return g
}

// listen listens on a free port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}

// openSession opens a session and then closes its connection.
func (g *testServer) openSession(t *testing.T) Session {
	t.Helper()
	conn, err := g.access.dialServer(context.Background(), g.access.Servers[0])
	require.NoError(t, err)
	defer conn.Close()
	ask := wire.ConnectRequest{Timeout: 20000, Password: make([]byte, wire.PasswordSize)}
	require.NoError(t, writeFrame(conn, ask.Encode))
	body, err := wire.ReadFrame(conn, nil, maxReplySize)
	require.NoError(t, err)
	var answer wire.ConnectResponse
	d := wire.NewDecoder(body)
	answer.Decode(&d)
	require.NoError(t, d.Err())
	return Session{Epoch: 1, ID: answer.Session, Password: append([]byte(nil), answer.Password...),
		Timeout: 20 * time.Second}
}

func (g *testServer) sessionIDs() (ids []int64) {
	for _, s := range g.zk.Sessions() {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestASessionIsClosed(t *testing.T) {
	g := newTestServer(t)
	other := g.openSession(t)
	require.NoError(t, g.session.closeOnServers(g.access))
	require.Equal(t, []int64{other.ID}, g.sessionIDs())
	require.NoError(t, g.session.closeOnServers(g.access), "the session has ended already")
	require.Equal(t, []int64{other.ID}, g.sessionIDs())
}

// TestASessionIsNotClosedBesideACommand: the parent dies while its command may still run.
func TestASessionIsNotClosedBesideACommand(t *testing.T) {
	g, k := newTestServer(t), newTestMonitor(t)
	k.sendMessages(commandBegins{1, 1}, g.access, g.session)
	k.runMonitor()
	k.closeSocket()
	require.ErrorIs(t, k.monitor.endSessionOfDeadParent(), errCommandMayRun)
	require.Equal(t, []int64{g.session.ID}, g.sessionIDs())
	k.monitor.handleMessage(commandEnded{1})
	require.NoError(t, k.monitor.endSessionOfDeadParent())
	require.Empty(t, g.sessionIDs())
}

func TestOtherSessionsAreNotClosed(t *testing.T) {
	g := newTestServer(t)
	other := g.openSession(t)
	both := []int64{g.session.ID, other.ID}
	wrong := g.session
	wrong.Password = other.Password
	require.NoError(t, wrong.closeOnServers(g.access),
		"servers answer a wrong password as they answer an ended session")
	require.Equal(t, both, g.sessionIDs())
	wrong = g.session
	wrong.ID += 1000
	require.NoError(t, wrong.closeOnServers(g.access))
	require.Equal(t, both, g.sessionIDs())
	wrong.ID = 0
	require.ErrorIs(t, wrong.closeOnServers(g.access), errIncompleteSession)
	wrong = Session{ID: g.session.ID}
	require.ErrorIs(t, wrong.closeOnServers(g.access), errIncompleteSession)
	require.Equal(t, both, g.sessionIDs(), "no session was opened either")
}

func TestServerAnsweringWithOtherSessionIsLeft(t *testing.T) {
	g := newTestServer(t)
	read := make(chan int, 1)
	ln := serveConnections(t, func(conn net.Conn) {
		_, _ = wire.ReadFrame(conn, nil, maxReplySize)
		answer := wire.ConnectResponse{Timeout: 1000, Session: 77, Password: make([]byte, wire.PasswordSize)}
		_ = writeFrame(conn, answer.Encode)
		rest, _ := io.ReadAll(conn)
		read <- len(rest)
	})
	g.access.Servers = []string{ln}
	require.ErrorContains(t, g.session.tryServers(t.Context(), g.access),
		"an answer for session 0x4d to a request for session")
	require.Zero(t, <-read, "the server gets no request")
}

// serveConnections calls f for each connection to the address that it returns, one after the other.
func serveConnections(t *testing.T, f func(net.Conn)) string {
	ln := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			f(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func TestSilentServersDelayLittle(t *testing.T) {
	g := newTestServer(t)
	release := make(chan struct{})
	silent := serveConnections(t, func(net.Conn) { <-release })
	t.Cleanup(func() { close(release) }) // runs before the cleanup of serveConnections
	g.session.Server = silent
	g.access.Servers = []string{"127.0.0.1:1", silent, g.access.Servers[0]}
	require.NoError(t, g.session.closeOnServers(g.access))
	require.Empty(t, g.sessionIDs())
}

// TestTriesGoOnUntilAServerIsThere ends the connection of the first try before a server is there.
// The address stays taken meanwhile: once it were free, another process could take it.
func TestTriesGoOnUntilAServerIsThere(t *testing.T) {
	g, ln := newTestServer(t), listen(t)
	ended := make(chan error, 1)
	go func() {
		ended <- g.session.closeOnServers(Access{Servers: []string{ln.Addr().String()}, DialTimeout: time.Minute})
	}()
	first, err := ln.Accept()
	require.NoError(t, err)
	require.NoError(t, first.Close())
	go func() { _ = g.zk.Serve(ln) }()
	require.NoError(t, <-ended)
	require.Empty(t, g.sessionIDs())
}

// TestTriesLastAsLongAsTheSession counts the rounds, in virtual time, if no server closes the
// session.
func TestTriesLastAsLongAsTheSession(t *testing.T) {
	const timeout = 10 * time.Second
	refuse := func(err error) (lasted time.Duration, rounds int) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			require.ErrorIs(t, retryUntilClosed(timeout, func(context.Context) error { rounds++; return err }), err)
			lasted = time.Since(began)
		})
		return lasted, rounds
	}

	unreached, rounds := refuse(io.ErrUnexpectedEOF)
	require.Greater(t, unreached, timeout-maxRoundDelay-time.Millisecond, "the session may still exist")
	require.LessOrEqual(t, unreached, timeout, "the session has expired")
	require.Greater(t, rounds, 10)

	resumed, _ := refuse(fmt.Errorf("%w: %w", errNotClosed, io.ErrUnexpectedEOF))
	require.Greater(t, resumed, maxSessionTimeouts*timeout-maxRoundDelay-time.Millisecond,
		"each server that resumes the session prolongs it")
	require.LessOrEqual(t, resumed, maxSessionTimeouts*timeout+maxRoundDelay)
}

// TestASessionIsClosedByALaterRound: two rounds fail, and the third closes the session.
func TestASessionIsClosedByALaterRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rounds := 0
		require.NoError(t, retryUntilClosed(time.Second, func(context.Context) error {
			if rounds++; rounds < 3 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}))
		require.Equal(t, 3, rounds)
	})
}

func TestTriesEndWithTheSession(t *testing.T) {
	s := Session{ID: 1, Password: []byte{1}, Timeout: 200 * time.Millisecond}
	require.Error(t, s.closeOnServers(Access{Servers: []string{"127.0.0.1:1"}, DialTimeout: time.Second}))
}

func TestCredentialsComeFirst(t *testing.T) {
	var xids []int32
	received := make(chan []int32, 1)
	addr := serveConnections(t, func(conn net.Conn) {
		_, _ = wire.ReadFrame(conn, nil, maxReplySize)
		answer := wire.ConnectResponse{Timeout: 1000, Session: 5, Password: make([]byte, wire.PasswordSize)}
		_ = writeFrame(conn, answer.Encode)
		for len(xids) < 2 {
			body, err := wire.ReadFrame(conn, nil, maxReplySize)
			if err != nil {
				break
			}
			var h wire.RequestHeader
			d := wire.NewDecoder(body)
			h.Decode(&d)
			xids = append(xids, h.Xid)
			_ = writeFrame(conn, wire.ReplyHeader{Xid: h.Xid}.Encode)
		}
		received <- xids
	})
	s := Session{ID: 5, Password: []byte{1}, Timeout: time.Minute}
	a := Access{Servers: []string{addr}, DialTimeout: time.Minute, Auth: []Credential{{"digest", []byte("u:p")}}}
	require.NoError(t, s.closeOnServers(a))
	require.Equal(t, []int32{wire.XidAuth, closeXid}, <-received)
}
