package workflow_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
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

// TestJSONOfARunHoldsEachValue: a result that is not UTF-8 is there as bytes as well, a time that
// JSON cannot hold breaks nothing.
func TestJSONOfARunHoldsEachValue(t *testing.T) {
	data, err := json.Marshal(workflow.Report{Path: "/flows", ID: "a", Input: []byte("\"\xff\""), Result: []byte("1"),
		Started: time.UnixMilli(9000000000000000),
		Taken:   &workflow.Taken{Member: "m", Session: 7, Since: time.UnixMilli(9000000000000000)},
		Steps:   []workflow.StepRecord{{Name: "s", Result: []byte("\"\xff\""), Took: 1500 * time.Millisecond}}})
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\"\xff\"")), got["input_base64"])
	require.NotContains(t, got, "result_base64")
	require.Equal(t, "/flows/a", got["path"])
	require.Equal(t, "0001-01-01T00:00:00Z", got["started"])
	require.Equal(t, map[string]any{"member": "m", "session": "0x7"}, got["taken"])
	step := got["steps"].([]any)[0].(map[string]any)
	require.Equal(t, 1.5, step["took"])
	require.Equal(t, got["input_base64"], step["result_base64"])
}
