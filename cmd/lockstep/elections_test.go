//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestElectionsAreShown(t *testing.T) {
	s := newStage(t)
	_, _, errs := s.run("elections")
	require.Contains(t, errs, "no elections at or below /lockstep/elections")
	s.start("elect", "billing", "--id", "a\x1b[2J", "--meta", "zone=\u202eeu").line(0)
	s.start("elect", "billing", "--id", "b", "--priority", "7", "--stable", "1h")
	s.queue("/lockstep/elections/billing", 2)
	s.queue("/lockstep/elections/billing~waiting", 1)
	list := s.ok("elections")
	require.Contains(t, list, `billing   "a\x1b[2J"`)
	detail := s.ok("elections", "billing")
	for _, want := range []string{"1 standing by", "leads", "stands by 1", "7", "zone="} {
		require.Contains(t, detail, want)
	}
	out := s.ok("elections", "--json")
	all := decode(t, out)["candidates"].([]any)
	require.Len(t, all, 2)
	require.Equal(t, "a\x1b[2J", all[0].(map[string]any)["id"])
	require.Equal(t, 7.0, all[1].(map[string]any)["priority"])
	for _, hostile := range []string{"\x1b", "\u202e"} {
		require.False(t, strings.Contains(list+detail+out, hostile))
	}
	require.Equal(t, list, s.ok("elections", "/lockstep/elections"))
}

// TestAnElectionThatMayNotBeReadHidesNoOther: its candidates may be read, and the record of its
// terms may not.
func TestAnElectionThatMayNotBeReadHidesNoOther(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"a", "b"} {
		s.start("elect", name).line(0)
	}
	conn, _, err := zk.Connect([]string{s.servers}, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.AddAuth("digest", []byte("owner:secret")))
	_, err = conn.SetACL("/lockstep/elections/a~term", zk.AuthACL(zk.PermAll), -1)
	require.NoError(t, err)
	code, out, errs := s.run("elections")
	require.Equal(t, cli.ExitNoPermission, code)
	require.Contains(t, errs, "/lockstep/elections/a~term")
	require.Contains(t, out, "b")
}
