//go:build unix

package main

import (
	"io"
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

func TestDevPrintsItsAddressAndPurpose(t *testing.T) {
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

func TestDevTakesSettingsOfZooCfg(t *testing.T) {
	s := onServers(t, "")
	p := s.start("dev", "--listen", "127.0.0.1:0", "--json", "--set", "tickTime=500", "--set", "4lw.commands.whitelist=conf,ruok")
	address := decode(t, p.line(0))["listen"].(string)
	ask := func(word string) string {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(word))
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		return string(answer)
	}
	require.Contains(t, ask("conf"), "tickTime=500\n")
	require.Contains(t, ask("stat"), "not in the whitelist")

	for setting, says := range map[string]string{"tickTime": "not name=value", "tikTime=1": "tikTime", "tickTime=x": "not a number", "jute.maxbuffer=1": "JuteMaxBuffer 1"} {
		code, _, errs := s.run("dev", "--listen", "127.0.0.1:0", "--set", setting)
		require.Equal(t, 64, code, setting)
		require.Contains(t, errs, says)
	}
}
