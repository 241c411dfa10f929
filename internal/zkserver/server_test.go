package zkserver

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func TestConfigNamesTheBadValue(t *testing.T) {
	for want, config := range map[string]Config{
		"Tick is 1µs":                   {Tick: time.Microsecond},
		"ContainerInterval is -1s":      {ContainerInterval: -time.Second},
		"MinSessionTimeout 5s is above": {MinSessionTimeout: 5 * time.Second, MaxSessionTimeout: time.Second},
		"OutgoingLimit -1 is negative":  {OutgoingLimit: -1},
	} {
		_, err := New(config)
		require.ErrorContains(t, err, want)
	}
}

func TestServeOverTCPAndClose(t *testing.T) {
	s, err := New(Config{})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()

	st := newTestClients(t, s)
	st.dial = func() net.Conn {
		nc, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		return nc
	}
	a := st.joinClient("a")
	a.mustCall(wire.OpCreate, createRequest("/a", "x", 0))
	s.Close()
	s.Close()
	require.NoError(t, <-served)
	a.waitForClose()
	_, err = net.Dial("tcp", ln.Addr().String())
	require.Error(t, err)
}

func TestClosedServerRefusesConnections(t *testing.T) {
	s, err := New(Config{})
	require.NoError(t, err)
	s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, s.Serve(ln), ErrClosed)
	client, server := net.Pipe()
	require.ErrorIs(t, s.ServeConn(server), ErrClosed)
	_, err = client.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

func TestServeReturnsWhenItsListenerIsClosed(t *testing.T) {
	s := startServer(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	require.NoError(t, ln.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
}

func TestExpiryIsRoundedUpToTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second})
		start := time.Now()
		time.Sleep(300 * time.Millisecond)
		a := newTestClients(t, s).joinFor("a", 4*time.Second)
		a.waitForClose()
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Empty(t, s.Sessions())
	})
}

func TestExactExpiryAndPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second, ExactExpiry: true})
		a := newTestClients(t, s).joinFor("a", 4*time.Second)
		for range 5 {
			time.Sleep(3900 * time.Millisecond)
			a.drain()
		}
		last := time.Now()
		time.Sleep(time.Second)
		a.mustCall(wire.OpAuth, authRequest("digest", "u:p")) // does not prolong the session, as on the real server
		a.waitForClose()
		require.Equal(t, 4*time.Second, time.Since(last))
	})
}

func TestReconnectWithShorterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second, ExactExpiry: true})
		st := newTestClients(t, s)
		a := st.joinFor("a", 20*time.Second)
		a2 := st.client("a2")
		a2.open(wire.ConnectRequest{Timeout: 2000, Session: a.session, Password: a.password})
		moved := time.Now()
		a2.waitForClose()
		require.Equal(t, 2*time.Second, time.Since(moved))
	})
}

func TestSessionsExpiringTogetherEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second})
		st := newTestClients(t, s)
		watcher := st.joinFor("watcher", 20*time.Second)
		for _, name := range []string{"/1", "/2", "/3", "/4", "/5"} {
			a := st.joinFor("a"+name, 2*time.Second)
			a.mustCall(wire.OpCreate, createRequest(name, "", wire.FlagEphemeral))
			watcher.mustCall(wire.OpExists, watchRequest(name))
		}
		time.Sleep(5 * time.Second)
		st.lines = nil
		watcher.drain()
		require.Len(t, st.lines, 6)
		for i, line := range st.lines[:5] {
			require.Equal(t, "watcher:   event zxid -1 NodeDeleted state 3 /"+string(rune('1'+i)), line)
		}
	})
}

func TestConnectionWithoutAHandshakeIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{})
		start := time.Now()
		_, err := pipeTo(t, s).Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}
