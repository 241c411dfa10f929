//go:build unix

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/members"
)

func TestMembersAreShownAndDrained(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("members")
	require.Equal(t, 0, code, errs)
	require.Empty(t, out)
	code, _, _ = s.run("members", "web")
	require.Equal(t, 1, code)

	watch := s.start("members", "web", "--watch")
	finish := make(chan struct{})
	web := members.New(s.connected(), "/lockstep/groups/web")
	m, err := web.Join(t.Context(), "web-1",
		members.Info{Version: "1.4", Load: 0.5, Metadata: map[string]string{"zone": "b\x1b[2J"}},
		members.WithDrain(func(ctx context.Context, _ members.Cordon) error {
			select {
			case <-finish:
			case <-ctx.Done():
			}
			return nil
		}))
	require.NoError(t, err)
	require.Contains(t, watch.line(0), "joined   web-1 active load 0.5 version 1.4 zone=")
	code, out, errs = s.run("members", "web")
	require.Equal(t, 0, code, errs)
	require.NotContains(t, out, "\x1b")
	for _, part := range []string{"web-1", "active", "1.4", "0.5", "zone="} {
		require.Contains(t, out, part)
	}
	code, _, errs = s.run("members", "cordon", "web", "web-1", "--reason", "new disk")
	require.Equal(t, 0, code, errs)
	require.Contains(t, watch.line(1), "changed  web-1 cordon")
	code, _, errs = s.run("members", "drain", "web", "web-1", "-w", "0.3")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "has not acknowledged")
	drain := s.start("members", "drain", "web", "web-1")
	close(finish)
	require.Equal(t, 0, drain.wait())
	_, out, _ = s.run("members", "web", "--json")
	one := decode(t, strings.TrimSpace(out))["members"].([]any)[0].(map[string]any)
	require.Equal(t, "drained", one["state"])
	require.Equal(t, true, one["cordon"].(map[string]any)["drain"])
	code, _, _ = s.run("members", "uncordon", "web", "web-1")
	require.Equal(t, 0, code)

	code, _, errs = s.run("members", "drain", "web", "web-2")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no such member")
	code, _, _ = s.run("members", "cordon", "web", "web-2", "--absent", "--reason", "to come")
	require.Equal(t, 0, code)
	_, out, _ = s.run("members", "web")
	require.Contains(t, out, "absent")
	_, out, _ = s.run("members", "--json")
	require.Contains(t, out, `"absent":[{"id":"web-2"`)
	_, out, _ = s.run("members")
	require.Contains(t, out, "web")
	for _, bad := range [][]string{{"members", "/"}, {"members", "--watch"}, {"members", "cordon", "web"},
		{"members", "cordon", "web", ""}, {"members", "a", "b"}} {
		code, _, _ = s.run(bad...)
		require.Equal(t, 64, code, bad)
	}
	require.NoError(t, m.Leave(t.Context()))
	watch.signal(syscall.SIGTERM)
	require.Equal(t, 0, watch.wait())
	code, _, _ = s.run("members", "uncordon", "web", "web-2")
	require.Equal(t, 0, code)
}
