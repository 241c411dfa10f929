//go:build unix

package main

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevServesAnyClient(t *testing.T) {
	s := onServers(t, "")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := s.start("dev", "--listen", "127.0.0.1:0", "--json")
		address := decode(t, p.line(0))["listen"].(string)
		code, out, _ := s.run("lock", "demo", "--zk", address, "--", "echo", "ran")
		require.Equal(t, 0, code)
		require.Equal(t, "ran\n", out)
		p.signal(sig)
		require.Equal(t, 0, p.wait())
	}
}

func TestDevSaysWhatItIs(t *testing.T) {
	s := onServers(t, "")
	p := s.start("dev", "--listen", "127.0.0.1:0")
	require.Regexp(t, `^ZooKeeper listens on 127\.0\.0\.1:\d+$`, p.line(0))
	require.Contains(t, p.line(1), "for development only")
	require.NotContains(t, read(p.out), "\x1b")
}

func TestDevOnATakenAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	code, _, errs := onServers(t, "").run("dev", "--listen", taken.Addr().String())
	require.Equal(t, 69, code)
	require.Contains(t, errs, "in use")
	require.Contains(t, errs, "--listen")
}
