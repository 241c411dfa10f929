package framework_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// narrowConn receives so many bytes a second.
type narrowConn struct {
	net.Conn
	rate int
}

func (c narrowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

// narrowMember is a client that receives so many bytes a second. It counts how often it is
// suspended.
func narrowMember(t *testing.T, zk *zktest.Server, name string, rate int) (s *framework.Session, suspended func() int) {
	t.Helper()
	link := zk.Link(name)
	m := zk.Member(t, name, framework.Config{SessionTimeout: 30 * time.Second},
		framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := link.DialContext(ctx, network, address)
			return narrowConn{nc, rate}, err
		}))
	var count atomic.Int64
	go func() {
		for c := range m.FollowState(t.Context()) {
			if c.State == framework.Suspended {
				count.Add(1)
			}
		}
	}()
	return session(t, m), func() int {
		synctest.Wait()
		return int(count.Load())
	}
}

// largeNodes makes nodes of 900 kB.
func largeNodes(t *testing.T, zk *zktest.Server, n int) (paths []string) {
	t.Helper()
	s := session(t, zk.Member(t, "writer", config))
	for i := range n {
		paths = append(paths, fmt.Sprintf("/large-%02d", i))
		require.NoError(t, s.Create(t.Context(), paths[i], make([]byte, 900_000), framework.Persistent))
	}
	return paths
}

// TestHeartbeatsAreAnsweredBetweenLargeReads reads 36 MB by one call and by many on a link of 18
// Mbit/s, which takes 16 s, more than twice as long as a heartbeat may.
func TestHeartbeatsAreAnsweredBetweenLargeReads(t *testing.T) {
	for _, calls := range []int{1, 10} {
		t.Run(fmt.Sprint(calls, " calls"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				paths := largeNodes(t, zk, 40)
				s, suspended := narrowMember(t, zk, "a", 18_000_000/8)
				hold := held(t, s, "/held")
				var all sync.WaitGroup
				each := len(paths) / calls
				for i := range calls {
					all.Go(func() {
						nodes, err := s.GetAll(t.Context(), paths[i*each:(i+1)*each]...)
						require.NoError(t, err)
						for _, n := range nodes {
							require.Len(t, n.Data, 900_000)
						}
					})
				}
				all.Wait()
				require.NoError(t, hold.Err())
				require.Zero(t, suspended())
			})
		})
	}
}

// TestHeartbeatsAreAnsweredBetweenLargeLists lists directories whose names together take longer
// than a heartbeat may.
func TestHeartbeatsAreAnsweredBetweenLargeLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const children = 500
		zk := zktest.Start(t)
		writer := session(t, zk.Member(t, "writer", config))
		var dirs []string
		for i := range 40 {
			dirs = append(dirs, fmt.Sprintf("/dir-%02d", i))
			ops := []framework.Op{framework.CreateOp(dirs[i], nil, framework.Persistent)}
			for n := range children {
				ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/%s%d", dirs[i], strings.Repeat("x", 200), n), nil,
					framework.Persistent))
			}
			_, err := writer.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		s, suspended := narrowMember(t, zk, "a", 200_000)
		hold := held(t, s, "/held")
		lists, err := primitives.Of(s).ListAll(t.Context(), dirs...)
		require.NoError(t, err)
		for _, l := range lists {
			require.Len(t, l.Names, children)
		}
		require.NoError(t, hold.Err())
		require.Zero(t, suspended())
	})
}

// TestALargeAnswerCostsAtMostOneConnection is of a client that has read small nodes before, and
// does not expect the large ones.
func TestALargeAnswerCostsAtMostOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		paths := largeNodes(t, zk, 40)
		s, suspended := narrowMember(t, zk, "a", 18_000_000/8)
		hold := held(t, s, "/held")
		for range 10 {
			_, err := s.GetAll(t.Context(), "/held", "/none")
			require.NoError(t, err)
		}
		for range 3 {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					_, err := s.GetAll(t.Context(), paths[i%4*10:][:10]...)
					require.NoError(t, err)
				})
			}
			all.Wait()
		}
		require.NoError(t, hold.Err())
		require.Equal(t, 1, suspended())
	})
}
