//go:build unix

package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicesShowsWhatIsRegistered(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("services")
	require.Equal(t, 0, code, errs)
	require.Empty(t, out)
	code, _, _ = s.run("services", "billing")
	require.Equal(t, 1, code)

	p := s.start("register", "billing", "10.0.0.7:8080", "--id", "one", "--weight", "2", "--metadata", "version=1\x1b[2J")
	require.Equal(t, "one", p.line(0))
	code, out, errs = s.run("services", "billing")
	require.Equal(t, 0, code, errs)
	require.NotContains(t, out, "\x1b")
	for _, part := range []string{"one", "10.0.0.7:8080", "enabled", "version="} {
		require.Contains(t, out, part)
	}
	code, _, errs = s.run("disable", "billing", "one", "--reason", "debugging")
	require.Equal(t, 0, code, errs)
	code, out, _ = s.run("services", "billing", "--json")
	require.Equal(t, 1, code)
	v := decode(t, strings.TrimSpace(out))
	require.Equal(t, "/lockstep/services/billing", v["path"])
	require.Equal(t, "debugging", v["instances"].([]any)[0].(map[string]any)["disabled"])
	code, _, _ = s.run("enable", "billing", "one")
	require.Equal(t, 0, code)
	_, out, _ = s.run("services")
	require.Contains(t, out, "billing")
	code, _, _ = s.run("enable", "billing", "two")
	require.Equal(t, 1, code)
	for _, bad := range [][]string{
		{"register", "billing", "x"}, {"register", "billing", "x:y"}, {"register", "billing", "a b:80"}, {"register", "billing", "a:80", "--weight", "5000"}, {"register", "billing", "a:80", "--weight", "0"},
		{"services", "/"}, {"services", "/a"}, {"disable", "billing"},
	} {
		code, _, _ = s.run(bad...)
		require.Equal(t, 64, code, bad)
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
	s.left()
}

// TestASignalEndsARegisterThatConnects to a server that does not answer.
func TestASignalEndsARegisterThatConnects(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	s := onServers(t, silent.Addr().String())
	p := s.start("register", "billing", "10.0.0.7:8080", "--connect-timeout", "1h")
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait(), "as of a register that has connected")
	require.Empty(t, read(p.err))
}
