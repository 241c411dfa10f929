//go:build unix

package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

func TestServicesShowsWhatIsRegistered(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("services")
	require.Equal(t, 0, code, errs)
	require.Empty(t, out)
	code, _, _ = s.run("services", "billing")
	require.Equal(t, 1, code)

	p := s.start("register", "billing", "10.0.0.7:8080", "--id", "one", "--weight", "2", "--metadata",
		"version=1\x1b[2J")
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
		{"register", "billing", "x"}, {"register", "billing", "x:y"}, {"register", "billing", "a b:80"},
		{"register", "billing", "a:80", "--weight", "5000"}, {"register", "billing", "a:80", "--weight", "0"},
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

// TestFarYearsEndNoList: other programs have stored times that JSON does not hold. Each list goes
// on, without those times.
func TestFarYearsEndNoList(t *testing.T) {
	s := newStage(t)
	c := s.connected()
	put := func(path, data string) {
		dir, _ := znode.Split(path)
		require.NoError(t, c.MakeDirs(t.Context(), dir))
		require.NoError(t, c.Create(t.Context(), path, []byte(data), framework.Persistent))
	}
	put("/lockstep/services/billing/far", `{"address":"a","port":5,"registrationTimeUTC":9000000000000000}`)
	put("/lockstep/services/mails/near", `{"address":"a","port":5,"registrationTimeUTC":9000000000}`)
	code, out, errs := s.run("services", "--json")
	require.Equal(t, 0, code, errs)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 2)
	require.NotContains(t, out, "0001-01-01")

	put("/lockstep/config/limits", "x")
	put("/lockstep/config/limits~past/v-0000000000",
		`{"v":1,"id":"1","text":"y","foreign":5,"written":"9999-12-31T23:59:59-14:00"}`)
	code, out, errs = s.run("config", "history", "limits", "--json")
	require.Equal(t, 0, code, errs)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 2)
}
