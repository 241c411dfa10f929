package ensemble

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer starts a server that gives every connection the same answer.
func answer(t *testing.T, text string) (addr string) {
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
			_, _ = io.ReadFull(conn, make([]byte, 4))
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func TestMode(t *testing.T) {
	require.Equal(t, "follower", Mode(answer(t, "Zookeeper version: 3\nMode: follower\nNode count: 5\n")))
	require.Empty(t, Mode(answer(t, "This ZooKeeper instance is not currently serving requests\n")))
	p, err := NewProxy("127.0.0.1:1")
	require.NoError(t, err)
	p.Close()
	require.Empty(t, Mode(p.Addr()), "no server listens")
}

func TestCounter(t *testing.T) {
	a := answer(t, "zk_packets_sent\t7\nzk_packets_received\t8\n")
	n, err := Counter(a, "zk_packets_received")
	require.NoError(t, err)
	require.EqualValues(t, 8, n)

	sum, err := Total([]string{a, a}, "zk_packets_sent")
	require.NoError(t, err)
	require.EqualValues(t, 14, sum)

	_, err = Total([]string{a}, "zk_packets")
	require.ErrorContains(t, err, "no zk_packets")
}
