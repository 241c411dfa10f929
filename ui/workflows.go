package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/workflow"
)

// runWeight orders runs: failed ones first, then those that no member has, then those that fail.
func runWeight(r workflow.Report) int {
	switch {
	case r.State == workflow.Failed:
		return 4
	case survey.IsUntaken(r):
		return 3
	case r.Failures > 0:
		return 2
	case r.State.IsFinished():
		return 0
	}
	return 1
}

// workflowRow is a run in a list.
type workflowRow struct {
	workflow.Report
	Mark  severity
	State string
	Why   string
}

func workflowRowOf(r workflow.Report) workflowRow {
	row := workflowRow{r, wait, string(r.State), strings.Join(r.Waits, ", ")}
	switch {
	case r.State == workflow.Failed:
		row.Mark = bad
	case r.State == workflow.Done:
		row.Mark = good
	case survey.IsUntaken(r):
		row.Mark, row.State = warn, "no member"
	case r.Failures > 0 && !r.State.IsFinished():
		row.Mark, row.State = warn, "retries"
	case r.State == workflow.Active:
		row.Mark = busy
	case r.State.IsFinished():
		row.Mark = off
	}
	if r.Error != "" {
		row.Why = r.Error
	}
	return row
}

func (r workflowRow) matches(wanted string) bool {
	return containsAny(wanted, r.ID, r.Kind, r.Path, r.State, r.Why)
}

type workflowsView struct {
	List   list[workflowRow]
	Failed int
}

func buildWorkflows(u *UI, q request, s *snapshot) (built, error) {
	var rows []workflowRow
	var v workflowsView
	runs := listJSON(s.Runs)
	for _, r := range s.Runs {
		rows = append(rows, workflowRowOf(r))
		if r.State == workflow.Failed {
			v.Failed++
		}
	}
	v.List = listOf(q.query, rows, map[string]func(a, b workflowRow) int{
		"run":   func(a, b workflowRow) int { return strings.Compare(a.ID, b.ID) },
		"since": func(a, b workflowRow) int { return b.Changed.Compare(a.Changed) },
	}, workflowRow.matches)
	return built{"Workflows", v, laterJSON(func(ctx context.Context) (any, error) {
		return read(ctx, u.hub, s, "steps", func(ctx context.Context) ([]workflow.Report, error) {
			_, err := sharedreport.AddSteps(ctx, u.client, runs)
			for i := range runs {
				if u.hideData {
					hideRun(&runs[i])
				}
			}
			if ended := survey.EndedBy(ctx, err); err != nil && ended != nil {
				return nil, ended
			}
			return runs, nil // steps that cannot be read are left out
		})
	})}, nil
}

type workflowView struct {
	Path     string
	Row      workflowRow
	Report   workflow.Report
	Commands []string
	Done     string
	HideData bool
	MayRetry bool
	Graphs   []graphView
	Steps    []workflow.StepRecord // the latest ones
	More     int                   // earlier ones
	Takers   []taker
	Watched  time.Time
}

// maxRowsOfRun is how many steps of a run a table shows; the JSON has all.
const maxRowsOfRun = 200

func buildWorkflow(u *UI, q request, s *snapshot) (built, error) {
	path, id := q.query.Get("path"), q.query.Get("id")
	if err := u.checkPath(path); err != nil {
		return built{}, err
	}
	info, err := read(q.ctx, u.hub, s, "workflow "+path+"\x00"+id, func(ctx context.Context) (workflow.Report, error) {
		w := workflow.New(u.client, path)
		defer w.Close(ctx) //nolint:errcheck // it has put nothing
		info, err := w.Inspect(ctx, id)
		if u.hideData {
			hideRun(&info)
		}
		return info, err
	})
	i := slices.IndexFunc(s.Runs, func(r workflow.Report) bool { return r.Path == path && r.ID == id })
	switch {
	case err != nil && i < 0 && s.failed == nil:
		return built{}, missing("run", path+" "+id, s.Runs,
			func(r workflow.Report) link { return u.linkOf(holding{page: "workflow", Path: r.Path, Run: r.ID}) })
	case err != nil && i >= 0 && s.failed != nil:
		info = s.Runs[i] // without steps
	case err != nil:
		return built{}, err
	}
	name := shellWord(id) + " --path " + shellWord(path)
	u.hub.mu.Lock()
	takers, watched := slices.Clone(u.hub.memory.takers[path+"\x00"+id]), u.hub.memory.since
	u.hub.mu.Unlock()
	v := workflowView{Path: path, Row: workflowRowOf(info), Report: info, Done: doneText(q.query),
		Commands: []string{"lockstep workflows " + name}, HideData: u.hideData, MayRetry: mayRetry(info.State),
		Graphs: graphsOf(info), Takers: takers, Watched: watched}
	v.More = max(0, len(info.Steps)-maxRowsOfRun)
	v.Steps = info.Steps[v.More:]
	return built{id, v, info}, nil
}
