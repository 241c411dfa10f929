//go:build unix

package main

import (
	"io"
	"net"
	"strings"
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

// askWord returns a server's answer to a four-letter word.
func askWord(t *testing.T, address, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(word))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}

// TestDevThatOthersCanReachSaysSo, and has the limits of a real server, unless the user sets
// others.
func TestDevThatOthersCanReachSaysSo(t *testing.T) {
	s := onServers(t, "")
	for _, set := range []string{"tickTime=2000", "4lw.commands.whitelist=*"} {
		p := s.start("dev", "--listen", ":0", "--json", "--set", set)
		_, port, err := net.SplitHostPort(decode(t, p.line(0))["listen"].(string))
		require.NoError(t, err)
		require.Contains(t, read(p.err), "everybody who can reach")
		address := "127.0.0.1:" + port
		require.Equal(t, set == "tickTime=2000", strings.Contains(askWord(t, address, "conf"), "not in the whitelist"))
		require.Equal(t, set != "tickTime=2000", strings.Contains(askWord(t, address, "conf"), "maxClientCnxns=60\n"))
		require.Contains(t, askWord(t, address, "srvr"), "Mode: standalone")
	}
	alone := s.start("dev", "--listen", "localhost:0", "--json")
	address := decode(t, alone.line(0))["listen"].(string)
	require.Empty(t, read(alone.err))
	require.Contains(t, askWord(t, address, "conf"), "maxClientCnxns=0\n")
}

func TestDevTakesSettingsOfZooCfg(t *testing.T) {
	s := onServers(t, "")
	p := s.start("dev", "--listen", "127.0.0.1:0", "--json", "--set", "tickTime=500", "--set",
		"4lw.commands.whitelist=conf,ruok")
	address := decode(t, p.line(0))["listen"].(string)
	require.Contains(t, askWord(t, address, "conf"), "tickTime=500\n")
	require.Contains(t, askWord(t, address, "stat"), "not in the whitelist")

	for setting, says := range map[string]string{"tickTime": "not name=value", "tikTime=1": "tikTime",
		"tickTime=x": "not a number", "jute.maxbuffer=1": "JuteMaxBuffer 1"} {
		code, _, errs := s.run("dev", "--listen", "127.0.0.1:0", "--set", setting)
		require.Equal(t, 64, code, setting)
		require.Contains(t, errs, says)
	}
}
