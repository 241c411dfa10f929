package zktest_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func BenchmarkLink(b *testing.B) {
	srv, err := zktest.New()
	require.NoError(b, err)
	defer srv.Close()
	benchmarkGets(b, srv, srv.Link("bench").Dial)
}

func BenchmarkTCP(b *testing.B) {
	srv, err := zktest.New()
	require.NoError(b, err)
	defer srv.Close()
	_, err = srv.ListenTCP("127.0.0.1:0")
	require.NoError(b, err)
	benchmarkGets(b, srv, net.DialTimeout)
}

// benchmarkGets reads a node over one connection, 64 requests at a time.
func benchmarkGets(b *testing.B, srv *zktest.Server, dial zk.Dialer) {
	conn, _, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(dial), zk.WithLogger(silent{}))
	require.NoError(b, err)
	defer conn.Close()
	_, err = conn.Create("/n", []byte("data"), 0, openACL)
	require.NoError(b, err)
	b.ResetTimer()
	var tasks sync.WaitGroup
	for range 64 {
		tasks.Go(func() {
			for range b.N/64 + 1 {
				if _, _, err := conn.Get("/n"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	tasks.Wait()
}
