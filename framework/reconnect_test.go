package framework_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAReadWithAnEndedLeasesContextReturns once went round for as long as the next session lived.
func TestAReadWithAnEndedLeasesContextReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		c, err := createProtected(t.Context(), s, "/d", "lock-", nil)
		require.NoError(t, err)
		h, err := primitives.Of(s).Hold(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, zk.Expire(s.ID()))
		<-h.Context().Done()
		session(t, m)
		_, _, err = m.Get(h.Context(), "/")
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, failure.IsTransient(err))
	})
}

// breaking fails the first write of one operation on the connections after the first.
type breaking struct {
	net.Conn
	op     wire.Op
	struck *atomic.Bool
	err    error
}

func (b breaking) Write(p []byte) (int, error) {
	if len(p) >= 12 && wire.Op(binary.BigEndian.Uint32(p[8:])) == b.op && b.struck.CompareAndSwap(false, true) {
		return 0, b.err
	}
	return b.Conn.Write(p)
}

// TestAFailedWriteIsALostConnection fails a write with an error of no known kind.
func TestAFailedWriteIsALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		var struck atomic.Bool
		m := zk.Member(t, "a", config, framework.WithDialer(func(ctx context.Context, n, a string) (net.Conn, error) {
			c, err := link.DialContext(ctx, n, a)
			return breaking{c, wire.OpCreate, &struck, io.ErrClosedPipe}, err
		}))
		require.NoError(t, m.Create(t.Context(), "/x", nil, framework.Persistent))
		require.True(t, struck.Load())
	})
}

// TestFailedAuthRequestDoesNotBlockClient once blocked the library for ever.
func TestFailedAuthRequestDoesNotBlockClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		var struck atomic.Bool
		struck.Store(true)
		cfg := config
		cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}
		m := zk.Member(t, "a", cfg, framework.WithDialer(func(ctx context.Context, n, a string) (net.Conn, error) {
			c, err := link.DialContext(ctx, n, a)
			return breaking{c, wire.OpAuth, &struck, io.ErrClosedPipe}, err
		}))
		s := session(t, m)
		struck.Store(false)
		link.Reset()
		time.Sleep(timeout)
		require.True(t, struck.Load())
		require.NoError(t, s.Err())
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		require.NoError(t, m.Close(ctx))
	})
}

// TestOneLossCostsOneDial would fail if the loss of one connection cut the next.
func TestOneLossCostsOneDial(t *testing.T) {
	zk := zktest.Start(t)
	m := zk.Member(t, "a", config)
	s := session(t, m)
	before := m.Link.Dials()
	const rounds = 100
	changes := m.FollowState(t.Context())
	for range rounds {
		m.Link.Reset()
		for c := range changes {
			if c.State == framework.Connected {
				break
			}
		}
		changes = m.FollowState(t.Context())
		require.NoError(t, s.Err())
	}
	require.LessOrEqual(t, m.Link.Dials()-before, rounds+rounds/10)
}

// TestConnectionComesBackSoonAfterAnOutage, also with a short session timeout: the pauses between
// attempts stay within it, and a server that says that the session has expired is asked for a new
// one at once.
func TestConnectionComesBackSoonAfterAnOutage(t *testing.T) {
	const short = 6 * time.Second
	for name, outage := range map[string]time.Duration{"the session ends": 5 * time.Minute,
		"the servers expire it": short / 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", framework.Config{SessionTimeout: short})
				for range 50 {
					s := session(t, m)
					time.Sleep(2 * short)
					m.Link.Cut()
					_ = zk.Expire(s.ID())
					time.Sleep(outage)
					m.Link.Heal()
					began := time.Now()
					<-s.Done()
					session(t, m)
					require.LessOrEqual(t, time.Since(began), short/2)
				}
			})
		})
	}
}

// TestServerClosingAfterHandshakeIsRetriedWithPauses counts connections in two seconds or more.
func TestServerClosingAfterHandshakeIsRetriedWithPauses(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var connections atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			greetAndHangUp(c)
		}
	})
	began := time.Now()
	err = connectInVain(t, 2*time.Second, framework.Config{Servers: []string{ln.Addr().String()}},
		"it answers, but not to a proof of life")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ln.Close()
	wg.Wait()
	require.Less(t, float64(connections.Load()), 25*time.Since(began).Seconds())
}

func greetAndHangUp(c net.Conn) {
	defer c.Close()
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size)))
	out := make([]byte, 4+20+16+1)
	binary.BigEndian.PutUint32(out, 37)
	binary.BigEndian.PutUint32(out[8:], 10000)
	binary.BigEndian.PutUint64(out[12:], 77)
	binary.BigEndian.PutUint32(out[20:], 16)
	_, _ = c.Write(out)
}
