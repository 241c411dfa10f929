package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

func TestListsAreFiltered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.flows("a").work(approval(0), newFunction("quick",
			func(context.Context, *workflow.Run, int) (int, error) { return 0, nil }))
		for i := range 3 {
			m.start("approval", fmt.Sprint("b", i), 0)
		}
		time.Sleep(time.Hour)
		later := time.Now()
		for i := range 3 {
			m.start("quick", fmt.Sprint("a", i), 0)
		}
		settled()
		ids := func(opts ...workflow.ListOption) (listed []string) {
			for r, err := range m.List(t.Context(), opts...) {
				require.NoError(t, err)
				listed = append(listed, r.ID)
			}
			return listed
		}
		require.Equal(t, []string{"a0", "a1", "a2", "b0", "b1", "b2"}, ids())
		require.Equal(t, []string{"b0", "b1", "b2"}, ids(workflow.WithStates(workflow.Waiting, workflow.Failed)))
		require.Equal(t, []string{"a0", "a1", "a2"}, ids(workflow.WithKinds("quick", "other")))
		require.Equal(t, []string{"a0", "a1", "a2"}, ids(workflow.WithStartedSince(later)))
		require.Equal(t, []string{"b1"}, ids(workflow.WithIDPrefix("b1"), workflow.WithStates(workflow.Waiting)))
		require.Empty(t, ids(workflow.WithIDPrefix("b"), workflow.WithStates(workflow.Done)))

		var pages [][]string
		for after, more := "", true; more; {
			var page []string
			for run, err := range m.List(t.Context(), workflow.WithIDAfter(after)) {
				require.NoError(t, err)
				page = append(page, run.ID)
				if len(page) == 4 {
					break
				}
			}
			if more = len(page) > 0; more {
				pages, after = append(pages, page), page[len(page)-1]
			}
		}
		require.Equal(t, [][]string{{"a0", "a1", "a2", "b0"}, {"b1", "b2"}}, pages)

		_, err := m.Client.Set(t.Context(), runNode(t, w, "b0"), []byte("{"), framework.AnyVersion)
		require.NoError(t, err)
		require.Equal(t, []string{"b2"}, ids(workflow.WithIDPrefix("b2")), "a run with another id is not read")
		require.Equal(t, []string{"b1", "b2"}, ids(workflow.WithIDAfter("b0")))
		for _, err = range m.List(t.Context(), workflow.WithIDPrefix("b0")) {
			require.Error(t, err)
		}

		for _, bad := range []workflow.ListOption{workflow.WithStates("lost"), workflow.WithKinds("")} {
			for _, err := range m.List(t.Context(), bad) {
				require.ErrorIs(t, err, framework.ErrInvalid)
			}
		}
	})
}
