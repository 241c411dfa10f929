package ensemble

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo starts a server that sends back all that it receives.
func echo(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func proxyTo(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := NewProxy(target)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func wantText(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// wantSilence requires that nothing arrives for a moment, not even the connection's end.
func wantSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := conn.Read(make([]byte, 1))
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)
}

// wantNoService requires that a new connection fails or ends.
func wantNoService(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return
	}
	defer conn.Close()
	wantEnd(t, conn)
}

func TestProxyPasses(t *testing.T) {
	conn := dial(t, proxyTo(t, echo(t)).Addr())
	send(t, conn, "hello")
	wantText(t, conn, "hello")
}

func TestProxyHoldsEachDirection(t *testing.T) {
	for name, d := range map[string]Direction{"up": Up, "down": Down, "both": Both} {
		t.Run(name, func(t *testing.T) {
			p := proxyTo(t, echo(t))
			conn := dial(t, p.Addr())
			send(t, conn, "one")
			wantText(t, conn, "one")
			p.Hold(d)
			send(t, conn, "two")
			wantSilence(t, conn)
			p.Release(d)
			wantText(t, conn, "two")
		})
	}
}

// TestProxyCountsAConnectionUntilAllIsPassed checks that a connection whose client has ended counts
// until what was held has left the proxy.
func TestProxyCountsAConnectionUntilAllIsPassed(t *testing.T) {
	p := proxyTo(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "one")
	wantText(t, conn, "one")
	require.False(t, p.HoldsUp())
	p.Hold(Up)
	require.False(t, p.HoldsUp(), "nothing was sent")
	send(t, conn, "two")
	require.Eventually(t, p.HoldsUp, time.Minute, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Equal(t, 1, p.Connections())
	p.Release(Up)
	require.Eventually(t, func() bool { return p.Connections() == 0 && !p.HoldsUp() }, time.Minute, time.Millisecond)
}

func TestProxyHeldDownStillPassesUp(t *testing.T) {
	got := make(chan string, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 3)
		for range 2 {
			_, _ = io.ReadFull(conn, buf)
			got <- string(buf)
		}
	}()
	p := proxyTo(t, ln.Addr().String())
	conn := dial(t, p.Addr())
	send(t, conn, "one")
	require.Equal(t, "one", <-got)
	p.Hold(Down)
	send(t, conn, "two")
	require.Equal(t, "two", <-got)
	wantSilence(t, conn)
}

func TestHeldProxyIsHalfOpen(t *testing.T) {
	p := proxyTo(t, echo(t))
	p.Hold(Both)
	conn := dial(t, p.Addr())
	send(t, conn, "hello")
	wantSilence(t, conn)
	p.Heal()
	wantText(t, conn, "hello")
}

func TestHeldProxyHidesTheEnd(t *testing.T) {
	p := proxyTo(t, answer(t, "bye"))
	conn := dial(t, p.Addr())
	p.Hold(Down)
	send(t, conn, "quit")
	wantSilence(t, conn)
	p.Heal()
	wantText(t, conn, "bye")
	wantEnd(t, conn)
}

func TestResetEndsConnectionsAndTakesNewOnes(t *testing.T) {
	p := proxyTo(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "x")
	wantText(t, conn, "x")
	p.Hold(Both) // a reset is not held
	send(t, conn, "y")
	p.Reset()
	wantEnd(t, conn)
	p.Heal()
	again := dial(t, p.Addr())
	send(t, again, "z")
	wantText(t, again, "z")
}

func TestCutRefusesUntilHealed(t *testing.T) {
	p := proxyTo(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "x")
	wantText(t, conn, "x")
	p.Cut()
	wantEnd(t, conn)
	wantNoService(t, p.Addr())
	p.Heal()
	again := dial(t, p.Addr())
	send(t, again, "y")
	wantText(t, again, "y")
}

func TestProxyWithoutServerEndsTheConnection(t *testing.T) {
	gone := proxyTo(t, "127.0.0.1:1")
	gone.Close()
	wantNoService(t, proxyTo(t, gone.Addr()).Addr())
}

func TestProxyClosesWhileHeld(t *testing.T) {
	p := proxyTo(t, echo(t))
	conn := dial(t, p.Addr())
	send(t, conn, "x")
	wantText(t, conn, "x")
	p.Hold(Both)
	send(t, conn, "y")
	halfOpen := dial(t, p.Addr())
	p.Close()
	p.Close()
	wantEnd(t, conn)
	wantEnd(t, halfOpen)
}
