package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// forEver is more requests than any test sends.
const forEver = 1 << 30

// TestThrottledHeartbeatKeepsConnection throttles the write and the sync of heartbeats: they are
// repeated on the same connection.
func TestThrottledHeartbeatKeepsConnection(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSync} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", config)
			s := session(t, m)
			connection := zk.Sessions()[0].Remote
			for range 10 {
				throttle := zk.Throttle(3, zktest.Match{Op: op})
				time.Sleep(timeout)
				<-throttle.Hit()
				require.NoError(t, s.Err())
				require.Equal(t, framework.Connected, s.State())
				require.Equal(t, connection, zk.Sessions()[0].Remote)
				require.Greater(t, s.LeaseRemaining(), timeout/4)
			}
		})
	}
}

// TestThrottledHeartbeatDoesNotExtendLease throttles the writes of all heartbeats from some moment
// on: the server goes on answering pings, but the lease lapses. Meanwhile the client tries other
// connections.
func TestThrottledHeartbeatDoesNotExtendLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		var dials atomic.Int64
		link := zk.Link("counted")
		s := session(t, zk.Member(t, "a", config,
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return link.DialContext(ctx, network, address)
			})))
		time.Sleep(3 * timeout)
		began, before := time.Now(), dials.Load()
		throttle := zk.Throttle(forEver, zktest.Match{Op: zktest.OpMulti, Session: s.ID()})
		<-s.Done()
		throttle.Cancel()
		require.Less(t, time.Since(began), timeout)
		require.ErrorIs(t, s.Err(), framework.ErrSessionLost)
		require.NotContains(t, s.Err().Error(), "expired")
		require.Greater(t, dials.Load(), before)
	})
}

// TestThrottledCreatesLeaveOneNode throttles protected creates of each kind three times. Each
// creates one node, or none once its context has ended.
func TestThrottledCreatesLeaveOneNode(t *testing.T) {
	for name, create := range map[string]struct {
		ops []zktest.Op
		run func(context.Context, *framework.Session) ([]primitives.Created, error)
	}{
		"protected": {[]zktest.Op{zktest.OpCreate},
			func(ctx context.Context, s *framework.Session) ([]primitives.Created, error) {
				c, err := createProtected(ctx, s, "/dir", "n-", nil)
				return []primitives.Created{c}, err
			}},
		"protected, with a list": {[]zktest.Op{zktest.OpCreate, zktest.OpGetChildren2},
			func(ctx context.Context, s *framework.Session) ([]primitives.Created, error) {
				c, names, err := createAndList(ctx, s, "/dir", "n-", nil)
				if err == nil && len(names) > 0 {
					require.Len(t, names, 1)
				}
				return []primitives.Created{c}, err
			}},
		"together": {[]zktest.Op{zktest.OpMulti},
			func(ctx context.Context, s *framework.Session) ([]primitives.Created, error) {
				return createTogether(ctx, s, primitives.ProtectedCreate{Dir: "/dir", Name: "n-", Count: 1,
					With: []framework.Op{framework.CheckOp("/dir", framework.AnyVersion)}})
			}},
		"together, of an exact name": {[]zktest.Op{zktest.OpMulti},
			func(ctx context.Context, s *framework.Session) ([]primitives.Created, error) {
				return createTogether(ctx, s,
					primitives.ProtectedCreate{Dir: "/dir", Name: "n", Plain: true, Unnumbered: true})
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				s := session(t, zk.Member(t, "a", config))
				require.NoError(t, s.MakeDirs(t.Context(), "/dir"))
				for _, op := range create.ops {
					zk.Throttle(3, zktest.Match{Op: op})
				}
				began := time.Now()
				created, err := create.run(t.Context(), s)
				require.NoError(t, err)
				require.Positive(t, time.Since(began), "it pauses between tries")
				require.Len(t, created, 1)
				require.Equal(t, []string{created[0].Path[len("/dir/"):]}, zk.Children("/dir"))
				primitives.Of(s).Discard(nil, created[0].Path)
				time.Sleep(time.Second)
				require.Empty(t, zk.Children("/dir"))

				throttle := zk.Throttle(forEver, zktest.Match{Op: create.ops[0]})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = create.run(ctx, s)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				throttle.Cancel()
				time.Sleep(time.Minute)
				require.NoError(t, s.Err())
				require.Empty(t, zk.Children("/dir"))
			})
		})
	}
}
