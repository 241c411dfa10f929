package framework_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// askForLess asks for a smaller session timeout in its connect request, as if a server with other
// settings granted less.
type askForLess struct {
	net.Conn
	timeout time.Duration
	first   sync.Once
}

func (c *askForLess) Write(p []byte) (int, error) {
	c.first.Do(func() { // the frame's length, the protocol's version, the last zxid and the timeout
		binary.BigEndian.PutUint32(p[16:], uint32(c.timeout.Milliseconds()))
	})
	return c.Conn.Write(p)
}

// TestALeaseEndsEarlierWhenAServerGrantsLess: a session moves to a server with a smaller timeout,
// and is cut off. Its lease ends before that server's ensemble expires the session.
func TestALeaseEndsEarlierWhenAServerGrantsLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long, short = 40 * time.Second, 10 * time.Second
		zk := zktest.Start(t)
		link := zk.Link("a")
		connections := 0
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := link.DialContext(ctx, network, address)
			if connections++; err == nil && connections > 1 {
				conn = &askForLess{Conn: conn, timeout: short}
			}
			return conn, err
		}
		m := zk.Member(t, "a", framework.Config{SessionTimeout: long}, framework.WithDialer(dial))
		s := session(t, m)
		c, err := createProtected(t.Context(), s, "/d", "lock-", nil)
		require.NoError(t, err)
		h, err := primitives.Of(s).Hold(t.Context(), c)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		link.Reset()
		time.Sleep(time.Second)
		require.Equal(t, short, s.Timeout())
		require.Less(t, s.LeaseRemaining(), short)
		link.Cut()
		expired := make(chan time.Time, 1)
		go func() {
			for len(zk.Sessions()) > 0 {
				time.Sleep(10 * time.Millisecond)
			}
			expired <- time.Now()
		}()
		<-h.Context().Done()
		ended := time.Now()
		require.True(t, ended.Before(<-expired), "the session has expired first")
		link.Heal()
	})
}

// TestASilentServerIsLeftAfterAPartOfTheGrantedTimeout, not of the longer one that was asked for:
// the lease of a suspended session ends with the granted one.
func TestASilentServerIsLeftAfterAPartOfTheGrantedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		var dials []time.Time
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			dials = append(dials, time.Now())
			conn, err := link.DialContext(ctx, network, address)
			if err == nil {
				conn = &askForLess{Conn: conn, timeout: 6 * time.Second}
			}
			return conn, err
		}
		m := zk.Member(t, "a", framework.Config{SessionTimeout: 40 * time.Second}, framework.WithDialer(dial))
		s := session(t, m)
		require.Equal(t, 6*time.Second, s.Timeout())
		link.HalfOpen(true)
		link.Reset()
		time.Sleep(20 * time.Second)
		link.Heal()
		require.NoError(t, m.Close(t.Context())) // nothing dials after that
		require.Greater(t, len(dials), 3)
		require.LessOrEqual(t, dials[2].Sub(dials[1]), 2500*time.Millisecond)
	})
}
