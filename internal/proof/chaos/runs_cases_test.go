//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/workflow"
)

// TestCheckerVerdictsOnRuns checks short histories of one run, from the processes' lines to the
// verdict.
func TestCheckerVerdictsOnRuns(t *testing.T) {
	// executed returns the lines of an execution: its process has the run from one time to another.
	executed := func(process, op, from, lastHeld, end string) string {
		return process + ` {"t":` + from + `,"op":` + op +
			`,"step":"requested","kind":"execution","path":"/runs","item":"r"}` + "\n" +
			process + ` {"t":` + from + `,"op":` + op + `,"step":"granted"}` + "\n" + process + ` {"t":` + lastHeld +
			`,"op":` + op + `,"step":"held"}` + "\n" + process + " " + end + "\n"
	}
	ended := func(op, at string) string { return `{"t":` + at + `,"op":` + op + `,"step":"ended","end":"released"}` }
	called := func(op, kind string) string {
		return `a {"t":1,"op":` + op + `,"step":"requested","kind":"` + kind + `","path":"/runs","item":"r"}` + "\n" +
			`a {"t":2,"op":` + op + `,"step":"granted"}` + "\n"
	}
	returned := func(process, result string) string {
		return process + ` {"t":9,"step":"shown","kind":"step","path":"/runs","item":"r","order":"step0","source":"` +
			result + `"}` + "\n"
	}
	waited := func(source string) string {
		return `a {"t":9,"step":"shown","kind":"finish","path":"/runs","item":"r","source":"` + source + `"}` + "\n"
	}
	good := func() finishedRun {
		r := finishedRun{Report: workflow.Report{ID: "r", State: workflow.Done,
			Result: json.RawMessage(`"x0,x1,7,x2,x3,x4"`)}}
		for i := range runSteps {
			name, result := fmt.Sprint("step", i), fmt.Sprint("x", i)
			r.Steps = append(r.Steps, workflow.StepRecord{Name: name, Result: json.RawMessage(`"` + result + `"`),
				Token: int64(i)})
			r.effects = append(r.effects, sinkEffect{name, "key-" + name, int64(i), result})
		}
		return r
	}
	for _, c := range []struct {
		name, events string
		change       func(*finishedRun)
		wrong        string
	}{
		{"a run", called("1", "start") + executed("a", "2", "3", "5", ended("2", "6")) + executed("b", "1", "7", "8",
			ended("1", "9")) + returned("a", "x0") + returned("b", "x0") +
			waited(`done \"x0,x1,7,x2,x3,x4\"`), nil, ""},
		{"two executors at once", executed("a", "2", "3", "8", ended("2", "9")) + executed("b", "1", "7", "8",
			ended("1", "9")), nil, "is executed by a/2 until 8, and by b/1 from 7 on"},
		{"an executor that was killed after another one had begun",
			executed("a", "2", "3", "8", "x") + executed("b", "1", "7", "8", ended("1", "9")), nil,
			"is executed by a/2"},
		{"an executor that was not scheduled when another one began",
			executed("a", "2", "3", "6", ended("2", "20")) + executed("b", "1", "7", "8", ended("1", "9")), nil, ""},
		{"a step that returned two results", returned("a", "x0") + returned("b", "y0"), nil, "has returned"},
		{"a step that returned a result that is not recorded", returned("a", "y0"), nil, `"x0" is recorded`},
		{"a wait that ended with another state", waited("cancelled "), nil, "until it was"},
		{"a run that was cancelled", called("1", "cancel_run"),
			func(r *finishedRun) { r.State, r.Result = workflow.Cancelled, nil }, ""},
		{"a run that is cancelled without a request", "",
			func(r *finishedRun) { r.State, r.Result = workflow.Cancelled, nil }, "is cancelled"},
		{"a run that has failed", "", func(r *finishedRun) { r.State, r.Error = workflow.Failed, "no excuse" },
			"no excuse"},
		{"a run that is lost", called("1", "start"), func(r *finishedRun) { r.ID = "other" }, "which does not exist"},
		{"a run without its last step", "", func(r *finishedRun) { r.Steps = r.Steps[:4] }, "with 4 steps"},
		{"a result of other steps", "", func(r *finishedRun) { r.Result = json.RawMessage(`"x0,x1,7,x2,x3,x5"`) },
			"is done with"},
		{"a record before its effect", "", func(r *finishedRun) { r.effects = r.effects[:4] }, "no such effect"},
		{"a record of a former executor", "", func(r *finishedRun) { r.Steps[4].Token, r.effects[4].Token = 1, 1 },
			"with token 1 after one with token 3"},
		{"an effect that happened again", "", func(r *finishedRun) {
			r.effects = append([]sinkEffect{{"step0", "key-step0", 0, "w0"}}, r.effects...)
		}, ""},
		{"two keys of a step", "", func(r *finishedRun) {
			r.effects = append([]sinkEffect{{"step0", "other key", 0, "w0"}}, r.effects...)
		}, "two keys for step0"},
		{"a key of two steps", "", func(r *finishedRun) { r.effects[1].Key = r.effects[0].Key },
			"which was that of r step0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, checker := newHistory(newSummary(1)), newChecker(t.TempDir())
			replayEvents(t, h, c.events)
			r := good()
			if c.change != nil {
				c.change(&r)
			}
			s := h.takeSegment()
			s.until, s.atRest, s.runs = 100, &servicesAtRest{}, []finishedRun{r}
			wrong := checker.checkSegment(1, s, nil)
			if c.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.NotEmpty(t, wrong)
			require.ErrorContains(t, wrong[0], c.wrong)
		})
	}
}

// TestSinkRefusesOldTokens checks that a sink refuses a token below the highest one, and accepts
// the highest one again.
func TestSinkRefusesOldTokens(t *testing.T) {
	dir := t.TempDir()
	for _, token := range []int64{3, 3, 5} {
		require.NoError(t, sinkEffect{Step: "step0", Token: token}.addTo(dir, "r"))
	}
	require.ErrorIs(t, sinkEffect{Step: "step0", Token: 4}.addTo(dir, "r"), errOldToken)
	all, err := readSink(dir, "r")
	require.NoError(t, err)
	require.Len(t, all, 3)
}
