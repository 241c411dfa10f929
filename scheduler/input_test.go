package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func nop(context.Context, Run) error { return nil }

// idle returns a client that never connects.
func idle(t testing.TB) *framework.Client {
	t.Helper()
	c, err := framework.New(framework.Config{Servers: []string{"192.0.2.1"}})
	require.NoError(t, err)
	return c
}

func TestBadJobsAreRefused(t *testing.T) {
	s := New(idle(t), "/s")
	for name, j := range map[string]Job{
		"name is empty":   {Spec: "* * * * *", Run: nop},
		"a slash":         {Name: "a/b", Spec: "* * * * *", Run: nop},
		"invalid path":    {Name: "..", Spec: "* * * * *", Run: nop},
		"control":         {Name: "a\x00", Spec: "* * * * *", Run: nop},
		"201 bytes":       {Name: strings.Repeat("x", 201), Spec: "* * * * *", Run: nop},
		"Run is nil":      {Name: "a", Spec: "* * * * *"},
		"Deadline is -1s": {Name: "a", Spec: "* * * * *", Run: nop, Deadline: -time.Second},
		"never fires":     {Name: "a", Spec: "0 0 30 2 *", Run: nop},
		"time zone":       {Name: "a", Spec: "* * * * *", Run: nop, Location: time.Local},
	} {
		err := s.Add(j)
		require.ErrorIs(t, err, ErrInvalidJob, name)
		if name != "control" {
			require.ErrorContains(t, err, name)
		}
	}
	require.ErrorIs(t, s.Run(t.Context()), ErrNoJobs)
	require.NoError(t, s.Add(Job{Name: "a", Spec: "* * * * *", Run: nop}))
	require.ErrorIs(t, s.Add(Job{Name: "a", Spec: "@daily", Run: nop}), ErrDuplicateJob)
}

func TestBadArgumentsComeFromEveryCall(t *testing.T) {
	for name, s := range map[string]*Scheduler{
		"client is nil":           New(nil, "/s"),
		"invalid path":            New(idle(t), "s"),
		"WithDrain: -1s":          New(idle(t), "/s", WithDrain(-time.Second)),
		"WithNow: the function":   New(idle(t), "/s", WithNow(nil)),
		"WithObserver: the funct": New(idle(t), "/s", WithObserver(nil)),
	} {
		require.ErrorContains(t, s.Add(Job{Name: "a", Spec: "* * * * *", Run: nop}), name)
		require.ErrorContains(t, s.Run(t.Context()), name)
		_, err := s.State(t.Context(), "a")
		require.ErrorContains(t, err, name)
		_, err = s.Jobs(t.Context())
		require.ErrorContains(t, err, name)
	}
	_, err := New(idle(t), "/s").State(t.Context(), "a/b")
	require.ErrorIs(t, err, ErrInvalidJob)
}
