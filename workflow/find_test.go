package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestFind finds workflows, one below the path of another among them, and takes nothing else for some.
func TestFind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		kind := approval(0)
		for _, path := range []string{"/orders", "/orders/old", "/lockstep/workflows"} {
			flows := workflow.New(m.Client, path)
			require.NoError(t, flows.Register(kind))
			require.NoError(t, flows.Start(t.Context(), "approval", "x", 1))
			require.NoError(t, flows.Cancel(t.Context(), "x", ""))
			require.NoError(t, flows.Close(t.Context()))
		}
		for _, path := range []string{"/lockstep/queues/mails", "/other/runs", "/orders/runs/00/queues", "/orders/runs/00/runs"} {
			mails := queue.New(m.Client, path, queue.Text())
			require.NoError(t, mails.Put(t.Context(), "ann"))
			require.NoError(t, mails.Close(t.Context()))
		}
		var found []string
		for path, err := range workflow.Find(t.Context(), m.Client, "/") {
			require.NoError(t, err)
			found = append(found, path)
		}
		require.Equal(t, []string{"/lockstep/workflows", "/orders", "/orders/old"}, found)
		for range workflow.Find(t.Context(), m.Client, "/other") {
			t.Error("a directory of queues is one of workflows")
		}
	})
}
