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
	good := func(change func(*Job)) Job {
		j := Job{Name: "a", Spec: "* * * * *", Run: nop}
		change(&j)
		return j
	}
	for says, j := range map[string]Job{
		"name is empty":                      {Spec: "* * * * *", Run: nop},
		"a slash":                            {Name: "a/b", Spec: "* * * * *", Run: nop},
		"invalid path":                       {Name: "..", Spec: "* * * * *", Run: nop},
		`"a\x00"`:                            {Name: "a\x00", Spec: "* * * * *", Run: nop},
		"201 bytes":                          {Name: strings.Repeat("x", 201), Spec: "* * * * *", Run: nop},
		"Run is nil":                         {Name: "a", Spec: "* * * * *"},
		"never fires":                        {Name: "a", Spec: "0 0 30 2 *", Run: nop},
		"time zone":                          {Name: "a", Spec: "* * * * *", Run: nop, Zone: time.Local},
		"Deadline is -1s":                    good(func(j *Job) { j.Deadline = -time.Second }),
		"Timeout is -1ns":                    good(func(j *Job) { j.Timeout = -1 }),
		"FirstPause is -1s":                  good(func(j *Job) { j.FirstPause = -time.Second }),
		"Jitter is -1m0s":                    good(func(j *Job) { j.Jitter = -time.Minute }),
		"MinHold is -1s":                     good(func(j *Job) { j.MinHold = -time.Second }),
		"-1 Attempts":                        good(func(j *Job) { j.Attempts = -1 }),
		"1001 Attempts":                      good(func(j *Job) { j.Attempts = 1001 }),
		"Revision -2":                        good(func(j *Job) { j.Revision = -2 }),
		`Misfire is "sometimes": there are`:  good(func(j *Job) { j.Misfire = "sometimes" }),
		`Overlap is "skip": there are`:       good(func(j *Job) { j.Overlap = "skip" }),
		`Guarantee is "exactly once"`:        good(func(j *Job) { j.Guarantee = "exactly once" }),
		`Placement is "anywhere": there are`: good(func(j *Job) { j.Placement = "anywhere" }),
		`Labels needs Placement "spread"`:    good(func(j *Job) { j.Labels = map[string]string{"a": "b"} }),
		`the value "b" has no name`: good(func(j *Job) {
			j.Placement, j.Labels = Spread, map[string]string{"": "b"}
		}),
		"a name of 1 bytes and a value of 257": good(func(j *Job) {
			j.Placement, j.Labels = Spread, map[string]string{"a": strings.Repeat("b", 257)}
		}),
	} {
		err := s.Add(j)
		require.ErrorIs(t, err, errInvalidJob, says)
		require.ErrorContains(t, err, says)
	}
	require.ErrorIs(t, s.Run(t.Context()), errNoJobs)
	require.NoError(t, s.Add(good(func(*Job) {})))
	require.ErrorIs(t, s.Add(Job{Name: "a", Spec: "@daily", Run: nop}), errDuplicateJob)
}

func TestBadArgumentsComeFromEveryCall(t *testing.T) {
	ctx := t.Context()
	for says, s := range map[string]*Scheduler{
		"client is nil":                New(nil, "/s"),
		"invalid path":                 New(idle(t), "s"),
		"the root cannot be":           New(idle(t), "/"),
		"belong to the servers":        New(idle(t), "/zookeeper/jobs"),
		"WithGrace: -1s":               New(idle(t), "/s", WithGrace(-time.Second)),
		"WithStuckAfter: 0s":           New(idle(t), "/s", WithStuckAfter(0)),
		"WithHistory: 0":               New(idle(t), "/s", WithHistory(0)),
		"WithHistory: -3":              New(idle(t), "/s", WithHistory(-3)),
		"WithHistory: 101":             New(idle(t), "/s", WithHistory(101)),
		"WithMaxConcurrent: 0":         New(idle(t), "/s", WithMaxConcurrent(0)),
		"WithLabels: the label with":   New(idle(t), "/s", WithLabels(map[string]string{"": "x"})),
		"WithNow: the function":        New(idle(t), "/s", WithNow(nil)),
		"WithOnEvent: the function is": New(idle(t), "/s", nil, WithOnEvent(nil)),
	} {
		_, state := s.State(ctx, "a")
		_, jobs := s.Jobs(ctx)
		_, runs := s.Runs(ctx, "a")
		for _, err := range []error{
			state, jobs, runs, s.Add(Job{Name: "a", Spec: "* * * * *", Run: nop}), s.Run(ctx), s.Trigger(ctx, "a"),
			s.Pause(ctx, "a"), s.Resume(ctx, "a"), s.Remove(ctx, "a"), s.Reschedule(ctx, "a", "@daily", nil),
		} {
			require.ErrorContains(t, err, says)
			if strings.HasPrefix(says, "With") {
				require.ErrorIs(t, err, errInvalidOption)
			}
		}
	}
	s := New(idle(t), "/s")
	for _, err := range []error{s.Trigger(ctx, "a/b"), s.Pause(ctx, ""), s.Resume(ctx, ".."), s.Remove(ctx, "a/b"),
		s.Reschedule(ctx, "a/b", "@daily", nil)} {
		require.ErrorIs(t, err, errInvalidJob)
	}
	require.ErrorIs(t, s.Reschedule(ctx, "a", "soon", nil), errInvalidSpec)
	_, err := s.State(ctx, "a/b")
	require.ErrorIs(t, err, errInvalidJob)
}
