package workflow

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowTable has one line for each run.
func workflowTable(runs []workflow.Report, now time.Time) *cli.Table {
	t := cli.NewTable("RUN", "KIND", "STATE", "SINCE", "LAST STEP", "FAILURES", "WAITS FOR", "MEMBER", "ERROR")
	for _, r := range runs {
		last := ""
		if len(r.Steps) > 0 {
			last = cli.ShortenText(r.Steps[len(r.Steps)-1].Name)
		}
		t.AddRow(cli.BoldCell(cli.ShortenText(NameOf(r))), cli.PlainCell(cli.ShortenText(r.Kind)),
			WorkflowStateCell(r),
			cli.PlainCell(cli.FormatAge(now.Sub(r.Changed))), cli.PlainCell(last),
			cli.YellowCell(cli.FormatCount(r.Failures)), cli.PlainCell(strings.Join(r.Waits, " or ")),
			cli.PlainCell(FormatTaken(r)), cli.RedCell(cli.ShortenText(r.Error)))
	}
	return t
}

// WorkflowStateCell is the state of a run. Failures are red.
func WorkflowStateCell(r workflow.Report) cli.Cell {
	text := string(r.State)
	switch r.State {
	case workflow.Active:
		if r.Taken == nil && r.TakenErr == nil {
			return cli.YellowCell("active, no member has it")
		}
		return cli.GreenCell(text)
	case workflow.Failed:
		return cli.RedCell(text)
	case workflow.Cancelled:
		return cli.YellowCell(text)
	case workflow.Done:
		return cli.DimCell(text)
	}
	return cli.PlainCell(text)
}

// FormatTaken is the session of the member that has a run, and the identity of the member.
func FormatTaken(r workflow.Report) string {
	switch {
	case r.TakenErr != nil:
		return "not known"
	case r.Taken == nil:
		return ""
	}
	session := r.Taken.Session.String()
	if r.Taken.Member == "" { // of an older release
		return session
	}
	return session + " of " + cli.ShortenText(r.Taken.Member)
}

// PrintRun prints a run and a picture of its steps.
func PrintRun(w io.Writer, r workflow.Report, now time.Time) error {
	style := cli.StyleFor(w)
	var b strings.Builder
	b.WriteString(style.Bold(cli.InOneLine(cli.QuoteName(NameOf(r)))) + "\n")
	state := WorkflowStateCell(r)
	parent := ""
	if r.Parent != "" {
		parent = nameOfRun(r.Path, r.Parent)
	}
	cli.WriteFacts(&b, style, [][2]string{
		{"kind", cli.QuoteName(r.Kind)},
		{"state", fmt.Sprintf("%s, since %s (%s)", state.Text, cli.FormatTime(r.Changed),
			cli.FormatAge(now.Sub(r.Changed)))},
		{"started", cli.FormatTime(r.Started)}, {"parent", cli.ShortenText(parent)}, {"member", FormatTaken(r)},
		{"input", shortenJSON(r.Input)},
		{"signals", joinNames(r.Signals)}, {"failures", cli.FormatCount(r.Failures)}, {"error", r.Error},
	})
	if _, err := io.WriteString(w, b.String()+"\n"); err != nil {
		return err
	}
	if err := stepTable(r).PrintTo(w); err != nil {
		return err
	}
	for _, g := range workflow.GraphsIn(r.Steps) {
		done := 0
		for _, s := range g.Steps {
			if s.Done {
				done++
			}
		}
		title := fmt.Sprintf("graph %s: %d of %d steps done", cli.QuoteName(g.Name), done, len(g.Steps))
		if _, err := io.WriteString(w, "\n"+style.Bold(cli.InOneLine(title))+"\n\n"); err != nil {
			return err
		}
		if err := graphTable(r, g).PrintTo(w); err != nil {
			return err
		}
	}
	return nil
}

// deepestIndent is how many levels of a graph are indented.
const deepestIndent = 12

// graphTable is a picture of a graph: each step below the steps that it comes after, indented by
// its level.
func graphTable(r workflow.Report, g workflow.GraphProgress) *cli.Table {
	t := cli.NewTable("", "", "STEP OF THE GRAPH", "AFTER", "WAITS FOR")
	for _, s := range g.Steps {
		t.AddRow(cli.DimCell("├─"), graphStateCell(r, s),
			cli.BoldCell(strings.Repeat("  ", min(s.Level, deepestIndent))+cli.ShortenText(s.Name)),
			cli.DimCell(cli.ShortenText(strings.Join(s.After, ", "))),
			cli.PlainCell(cli.ShortenText(strings.Join(s.WaitsFor, ", "))))
	}
	t.Rows[len(t.Rows)-1][0].Text = "└─"
	return t
}

// graphStateCell is the state of a step of a graph.
func graphStateCell(r workflow.Report, s workflow.GraphStepProgress) cli.Cell {
	switch state := survey.GraphStepState(r, s); state {
	case survey.StepDone:
		return cli.GreenCell(state)
	case survey.StepFailed, survey.StepNotDone:
		return cli.RedCell(state)
	case survey.StepWaiting:
		return cli.DimCell(state)
	default:
		return cli.YellowCell(state)
	}
}

func joinNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = cli.QuoteName(name)
	}
	return strings.Join(quoted, ", ")
}

// shortenJSON is the beginning of JSON. It adds no quotes: a table escapes the text.
func shortenJSON(data json.RawMessage) string { return cli.CutText(string(data)) }

// stepTable is a picture of a run: its finished steps in their order, and what comes next.
func stepTable(r workflow.Report) *cli.Table {
	t := cli.NewTable("", "", "STEP", "TOOK", "ATTEMPTS", "RECORDED", "RESULT")
	for _, s := range r.Steps {
		if len(workflow.GraphsIn([]workflow.StepRecord{s})) > 0 {
			continue // graphTable shows it
		}
		attempts := ""
		if s.Attempts > 1 {
			attempts = strconv.Itoa(s.Attempts)
		}
		state, result := cli.GreenCell("done"), cli.PlainCell(shortenJSON(s.Result))
		if s.Error != "" {
			state, result = cli.RedCell("failed"), cli.RedCell(cli.ShortenText(s.Error))
		}
		t.AddRow(cli.DimCell("├─"), state, cli.BoldCell(cli.ShortenText(s.Name)),
			cli.PlainCell(s.Took.String()),
			cli.YellowCell(attempts), cli.DimCell(cli.FormatTime(s.Recorded)), result)
	}
	end := func(what cli.Cell, text, result string) {
		t.AddRow(cli.DimCell("├─"), what, cli.PlainCell(text), cli.PlainCell(""), cli.PlainCell(""), cli.PlainCell(""),
			cli.PlainCell(result))
	}
	switch r.State {
	case workflow.Active:
		switch {
		case r.Taken != nil:
			end(cli.GreenCell("running"), "since "+cli.FormatTime(r.Taken.Since), "")
		case r.TakenErr != nil:
			end(cli.YellowCell("active"), "lockstep cannot read whether a member has it", "")
		default:
			end(cli.YellowCell("queued"), "until a member with the kind takes it", "")
		}
	case workflow.Waiting:
		for _, wait := range r.Waits {
			end(cli.YellowCell("waiting"), "for "+wait, "")
		}
	case workflow.Done:
		end(cli.GreenCell("done"), "the run", shortenJSON(r.Result))
	case workflow.Failed:
		end(cli.RedCell("failed"), cli.ShortenText(r.Error), "")
	default:
		end(cli.YellowCell(string(r.State)), cli.ShortenText(r.Error), "")
	}
	t.Rows[len(t.Rows)-1][0].Text = "└─"
	return t
}
