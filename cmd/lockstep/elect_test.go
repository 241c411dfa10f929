//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// client is the test's own.
func client(t *testing.T, s *stage) *framework.Client {
	t.Helper()
	c, err := framework.Connect(t.Context(), framework.Config{Servers: strings.Split(s.servers, ",")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func deleteNode(t *testing.T, s *stage, path string) {
	t.Helper()
	require.NoError(t, client(t, s).Delete(t.Context(), path, framework.AnyVersion))
}

func touch(t *testing.T, file string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, nil, 0o644))
}

func TestElectEndsAsItsCommandDid(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("elect", "demo", "--id", "me", "--", "sh", "-c",
		`echo "$LOCKSTEP_PATH $LOCKSTEP_TOKEN"; exit 9`)
	require.Equal(t, 9, code)
	require.Regexp(t, `^/lockstep/elections/demo [1-9]\d*\n$`, out)
	require.Regexp(t, `^lockstep: leading /lockstep/elections/demo as me with token \d+\n$`, errs)
	s.left()
}

func TestElectUsesLeaderLatchsLayout(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo", "--id", "me")
	require.Equal(t, "/lockstep/elections/demo", p.fields(0)[0])
	name := s.zk.Children("/lockstep/elections/demo")[0]
	require.Regexp(t, `^_c_[0-9a-f-]{36}-latch-\d{10}$`, name)
	node, ok := s.zk.Node("/lockstep/elections/demo/" + name)
	require.True(t, ok)
	require.Equal(t, "me", string(node.Data))
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
	s.left()
}

func TestElectJSON(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo", "--id", "me", "--json")
	v := decode(t, p.line(0))
	require.Equal(t, "me", v["id"])
	require.Equal(t, "/lockstep/elections/demo", v["path"])
	require.Positive(t, v["token"])
	p.signal(syscall.SIGINT)
	require.Equal(t, 0, p.wait())
}

func TestOneLeadsAndTheNextTakesOver(t *testing.T) {
	s := newStage(t)
	script := `echo "$1 $LOCKSTEP_TOKEN"; while [ ! -e "$DIR/$1" ]; do sleep 0.01; done; exit 4`
	a := s.start("elect", "demo", "--", "sh", "-c", script, "sh", "a")
	first := a.line(0)
	b := s.start("elect", "demo", "--", "sh", "-c", script, "sh", "b")
	s.queue("/lockstep/elections/demo", 2)
	require.Empty(t, read(b.out))
	touch(t, s.file("a"))
	require.Equal(t, 4, a.wait())
	second := b.line(0)
	require.Less(t, number(t, first[2:]), number(t, second[2:]))
	touch(t, s.file("b"))
	require.Equal(t, 4, b.wait())
}

func TestElectCampaignsAgainWhenLeadershipIsLost(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo", "--", "sh", "-c",
		`trap 'echo told; exit 3' TERM; echo $LOCKSTEP_TOKEN; while :; do sleep 0.01; done`)
	first := p.line(0)
	s.expire()
	require.Equal(t, "told", p.line(1))
	require.Less(t, number(t, first), number(t, p.line(2)))
	require.Contains(t, read(p.err), "campaigning again")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 3, p.wait(), "the command's own")
	s.left()
}

func TestElectWithoutACommandCampaignsAgainToo(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo")
	first := p.fields(0)
	s.expire()
	require.Less(t, number(t, first[1]), number(t, p.fields(1)[1]))
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}

func TestASignalEndsACandidate(t *testing.T) {
	s := newStage(t)
	s.start("elect", "demo").line(0)
	candidate := s.start("elect", "demo", "--", "echo", "ran")
	s.queue("/lockstep/elections/demo", 2)
	candidate.signal(syscall.SIGINT)
	require.Equal(t, 0, candidate.wait(), "nothing ran")
	require.Empty(t, read(candidate.out))
	s.queue("/lockstep/elections/demo", 1)
}

func TestObserve(t *testing.T) {
	s := newStage(t)
	o := s.start("elect", "demo", "--observe")
	require.Equal(t, []string{"none", "0", "0"}, o.fields(0)[1:])
	a := s.start("elect", "demo", "--id", "a")
	token := a.fields(0)[1]
	require.Equal(t, []string{"a", token, "1"}, o.fields(1)[1:])
	a.signal(syscall.SIGTERM)
	a.wait()
	require.Equal(t, []string{"none", "0", "0"}, o.fields(2)[1:])
	b := s.start("elect", "demo", "--id", "none\n\x1b[31m")
	b.line(0)
	require.Equal(t, `"none\n\x1b[31m"`, o.fields(3)[1], "an id cannot forge a line")
	for n := range 4 {
		_, err := time.Parse(time.RFC3339, o.fields(n)[0])
		require.NoError(t, err)
	}
	o.signal(syscall.SIGTERM)
	require.Equal(t, 0, o.wait())
}

func TestObserveJSON(t *testing.T) {
	s := newStage(t)
	o := s.start("elect", "demo", "--observe", "--json")
	v := decode(t, o.line(0))
	require.Contains(t, v, "id")
	require.Nil(t, v["id"])
	s.start("elect", "demo", "--id", "a", "--meta", "address=host:1", "--meta", "note=a=b, c").line(0)
	v = decode(t, o.line(1))
	require.Equal(t, "a", v["id"])
	require.Positive(t, v["token"])
	require.NotEmpty(t, v["time"])
	require.EqualValues(t, 1, v["term"])
	require.Equal(t, map[string]any{"address": "host:1", "note": "a=b, c"}, v["metadata"])
}

func TestAPreferredCandidateTakesOver(t *testing.T) {
	s := newStage(t)
	a := s.start("elect", "demo", "--id", "a", "--", "sh", "-c",
		`trap 'exit 3' TERM; echo leads; while :; do sleep 0.01; done`)
	a.line(0)
	b := s.start("elect", "demo", "--id", "b", "--priority", "5", "--stable", "0.1")
	b.line(0)
	s.until("the notice", func() bool { return strings.Contains(read(a.err), "campaigning again") })
	require.Contains(t, read(a.err), `leadership was handed on: to "b", of priority 5; campaigning again`)
	require.NotContains(t, read(a.err), "warning", "nothing has gone wrong")
	b.signal(syscall.SIGTERM)
	require.Equal(t, 0, b.wait())
	require.Equal(t, "leads", a.line(1))
}

func TestElectRefusesBadValues(t *testing.T) {
	s := newStage(t)
	for says, args := range map[string][]string{
		"--meta \"x\" is not KEY=VALUE":       {"--meta", "x"},
		"key of \"x\" is empty":               {"--meta", "=x"},
		"--meta \"a\" is given twice":         {"--meta", "a=1", "--meta", "a=2"},
		"WithPriority: 1001 is not between":   {"--priority", "1001"},
		"it must be positive":                 {"--priority", "1", "--stable", "-1s"},
		"--stable has no effect":              {"--stable", "1s"},
		"--meta has no effect with --observe": {"--observe", "--meta", "a=b"},
	} {
		code, _, errs := s.run(append([]string{"elect", "demo"}, args...)...)
		require.Equal(t, 64, code, says)
		require.Contains(t, errs, says)
	}
}
