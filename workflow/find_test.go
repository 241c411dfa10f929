package workflow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestFind finds workflows, one below the path of another among them, and takes nothing else for
// some.
func TestFind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		approval := workflow.NewKind[int, string]("approval")
		for _, path := range []string{"/orders", "/orders/old", "/lockstep/workflows"} {
			flows := workflow.New(m.Client, path)
			_, err := approval.Start(t.Context(), flows, "x", 1)
			require.NoError(t, err)
			require.NoError(t, flows.Cancel(t.Context(), "x", ""))
			require.NoError(t, flows.Close(t.Context()))
		}
		for _, path := range []string{"/lockstep/queues/mails", "/other/runs", "/orders/runs/00/queues",
			"/orders/runs/00/runs"} {
			mails := queue.New(m.Client, path, codec.Text())
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

// TestListYieldsRunsAndErrors: the runs, with the members that have them, and the errors of those
// that cannot be read.
func TestListYieldsRunsAndErrors(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		goOn := make(chan struct{})
		defer close(goOn)
		kind := newFunction("long", func(ctx context.Context, run *workflow.Run, n int) (int, error) {
			if n == 0 {
				return 0, run.Sleep(ctx, "nap", time.Hour)
			}
			<-goOn
			return n, nil
		})
		m := w.flows("a").work(kind)
		for i := range 1200 {
			m.start("long", fmt.Sprint(i), i%200)
		}
		settled()
		require.NoError(t, m.MakeDirs(t.Context(), runsPath+"/runs/00"))
		require.NoError(t, m.Create(t.Context(), runsPath+"/runs/00/foreign", nil, framework.Persistent))
		listed, unread := failure.Collect(m.List(t.Context()))
		require.Error(t, unread)
		require.Len(t, listed, 1200)
		require.True(t, slices.ContainsFunc(listed, func(i workflow.Report) bool { return i.Taken != nil }))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range m.List(ended) {
			require.ErrorIs(t, err, context.Canceled)
		}
		for range m.List(t.Context()) {
			break
		}
	})
}
