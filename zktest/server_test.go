package zktest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestOptionsRefuseBadValues(t *testing.T) {
	for want, opt := range map[string]Option{
		"tick of 0s":                              WithTick(0),
		"container interval of -1s":               WithContainerInterval(-time.Second),
		"session timeouts from 2s to 1s":          WithSessionTimeouts(2*time.Second, time.Second),
		"logger is nil":                           WithLogger(nil),
		"jute.maxbuffer of 0 bytes":               WithJuteMaxBuffer(0),
		"JuteMaxBuffer 7 is not between":          WithJuteMaxBuffer(7),
		"0 connections":                           WithMaxClientCnxns(0),
		`"rouk", which is not a four-letter word`: WithFourLetterWords("srvr", "rouk"),
		"super digest is empty":                   WithSuperDigest(""),
		`"super" is not user:digest`:              WithSuperDigest("super"),
	} {
		_, err := New(opt)
		require.ErrorIs(t, err, errOption)
		require.ErrorContains(t, err, want)
	}
	zk, err := New(nil) // as in all packages
	require.NoError(t, err)
	zk.Close()
}

// recorder is a TB that notes what Start does with it.
type recorder struct {
	cleanups []func()
	failure  string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestStartCleansUpOrFails(t *testing.T) {
	var good recorder
	srv := Start(&good)
	require.Len(t, good.cleanups, 1)
	good.cleanups[0]()
	_, err := srv.Link("k").Dial("tcp", "", time.Second)
	require.ErrorIs(t, err, errRefused)

	var bad recorder
	Start(&bad, WithTick(-1))
	require.Contains(t, bad.failure, "tick of -1ns")
	require.Empty(t, bad.cleanups)
}

// TestATestFailsByASessionThatIsTooLarge has a client hold as much as a session may not have.
func TestATestFailsByASessionThatIsTooLarge(t *testing.T) {
	for _, c := range []struct {
		nodes int
		fails bool
	}{{2, false}, {3, true}} {
		synctest.Test(t, func(t *testing.T) { // in real time, the library gives its close up after a second
			var tb recorder
			srv := Start(&tb, WithJuteMaxBuffer(500))
			conn, _, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(srv.Link("a").Dial),
				zk.WithLogInfo(false))
			require.NoError(t, err)
			for range c.nodes {
				_, err := conn.Create("/"+strings.Repeat("x", 350), nil, zk.FlagEphemeral|zk.FlagSequence,
					zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}
			conn.Close()
			require.Empty(t, tb.failure)
			tb.cleanups[0]()
			if c.fails {
				require.ErrorIs(t, srv.Err(), ErrSessionTooLarge)
				require.Contains(t, tb.failure, srv.Err().Error())
			} else {
				require.NoError(t, srv.Err())
				require.Empty(t, tb.failure)
			}
		})
	}
}

func TestListenTCP(t *testing.T) {
	srv := Start(t)
	require.Equal(t, []string{memoryAddress}, srv.Servers())
	addr, err := srv.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	require.Equal(t, []string{addr}, srv.Servers())
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	_, err = nc.Write([]byte("ruok"))
	require.NoError(t, err)
	answer, err := io.ReadAll(nc)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer))
	require.NoError(t, nc.Close())

	_, err = srv.ListenTCP(addr)
	require.ErrorContains(t, err, addr, "the address is taken")
	srv.Close()
	_, err = srv.ListenTCP("127.0.0.1:0")
	require.ErrorIs(t, err, errClosed)
}

func TestTheLoggerHearsOfExpiries(t *testing.T) {
	var log bytes.Buffer
	srv := Start(t, WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithSessionTimeouts(time.Second, time.Minute))
	require.ErrorContains(t, srv.Expire(7), "0x7")
	require.Empty(t, log.String())
}

func TestManyServersLeaveNothingBehind(t *testing.T) {
	for range 50 {
		srv, err := New()
		require.NoError(t, err)
		_, err = srv.ListenTCP("127.0.0.1:0")
		require.NoError(t, err)
		_, err = srv.Link("k").Dial("tcp", "", time.Second)
		require.NoError(t, err)
		srv.Close()
		srv.Close()
	}
	goleak.VerifyNone(t)
}

// TestMustConnectPanicsWithoutASession, and leaves nothing behind (TestMain looks for that).
func TestMustConnectPanicsWithoutASession(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Panics(t, func() { MustConnect(ctx) })
}
