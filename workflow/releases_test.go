package workflow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/workflow"
)

// releaseOf is the kind "order" of a release. Its result names the release that ran each step. Its
// runs take the first step, sleep for an hour, and take the other steps.
func releaseOf(release string, done *doneLog, first string, others ...string) workflow.Function {
	return newFunction("order", func(ctx context.Context, run *workflow.Run, input int) (string, error) {
		var by []string
		take := func(name string) error {
			ran, err := workflow.Step(ctx, run, name, func(context.Context, workflow.Key) (string, error) {
				done.add("%d %s", input, name)
				return release, nil
			})
			by = append(by, name+" by "+ran)
			return err
		}
		if err := take(first); err != nil {
			return "", err
		}
		if err := run.Sleep(ctx, "settle", time.Hour); err != nil {
			return "", err
		}
		for _, name := range others {
			if err := take(name); err != nil {
				return "", err
			}
		}
		return strings.Join(by, ", "), nil
	})
}

// TestTwoReleasesWorkSideBySide replaces a release by the next while runs go on: members of both
// take runs of one kind, and a kind that only the new release has is left to it.
func TestTwoReleasesWorkSideBySide(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const each = 10
		var done doneLog
		var old, next []*worker
		for i := range 2 {
			old = append(old, w.flows(fmt.Sprint("old", i)).work(releaseOf("old", &done, "reserve", "charge", "ship")))
		}
		for i := range each {
			old[i%2].start("order", fmt.Sprint("before", i), i)
		}
		settled()
		refund := newFunction("refund",
			func(context.Context, *workflow.Run, int) (string, error) { return "refunded", nil })
		for i := range 2 {
			next = append(next, w.flows(fmt.Sprint("next", i)).work(releaseOf("next", &done, "reserve", "ship",
				"thank"), refund))
		}
		settled()
		for i := range each {
			old[i%2].start("refund", fmt.Sprint("refund", i), i)
			next[i%2].start("order", fmt.Sprint("beside", i), each+i)
		}
		for i := range each {
			require.Equal(t, `"refunded"`, string(next[0].await(fmt.Sprint("refund", i), workflow.Done).Result))
		}
		time.Sleep(30 * time.Minute)
		for _, m := range old {
			m.stop()
		}
		for i := range each {
			require.Equal(t, `"reserve by old, ship by next, thank by next"`,
				string(next[0].await(fmt.Sprint("before", i), workflow.Done).Result))
			require.Regexp(t, `^"reserve by (old|next), ship by next, thank by next"$`,
				string(next[1].await(fmt.Sprint("beside", i), workflow.Done).Result))
		}
		require.Len(t, done.all(), 2*each*3, "each step was run once")
	})
}
