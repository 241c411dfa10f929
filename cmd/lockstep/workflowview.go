package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowTable has one line for each run.
func workflowTable(runs []listedRun, now time.Time) *table {
	t := newTable("RUN", "KIND", "STATE", "SINCE", "LAST STEP", "FAILURES", "WAITS FOR", "MEMBER", "ERROR")
	for _, r := range runs {
		last := ""
		if len(r.Steps) > 0 {
			last = shortenText(r.Steps[len(r.Steps)-1].Name)
		}
		t.addRow(boldCell(shortenText(r.name())), plainCell(shortenText(r.Kind)), workflowStateCell(r.Info),
			plainCell(formatAge(now.Sub(r.ChangedAt))), plainCell(last),
			yellowCell(formatCount(r.Failures)), plainCell(strings.Join(r.Waits, " or ")),
			plainCell(formatTaken(r.Info)), redCell(shortenText(r.Error)))
	}
	return t
}

// workflowStateCell is the state of a run. Failures are red.
func workflowStateCell(r workflow.Info) cell {
	text := string(r.State)
	switch r.State {
	case workflow.Active:
		if r.Taken == nil && r.TakenErr == nil {
			return yellowCell("active, no member has it")
		}
		return greenCell(text)
	case workflow.Failed:
		return redCell(text)
	case workflow.Cancelled:
		return yellowCell(text)
	case workflow.Done:
		return dimCell(text)
	}
	return plainCell(text)
}

// formatTaken is the session of the member that has a run, and the identity of the member.
func formatTaken(r workflow.Info) string {
	switch {
	case r.TakenErr != nil:
		return "not known"
	case r.Taken == nil:
		return ""
	}
	session := locks.SessionID(r.Taken.Session).String()
	if r.Taken.Member == "" { // of an older release
		return session
	}
	return session + " of " + shortenText(r.Taken.Member)
}

// printWorkflow prints a run and a picture of its steps.
func printWorkflow(w io.Writer, r listedRun, now time.Time) error {
	style := styleFor(w)
	var b strings.Builder
	b.WriteString(style.Bold(inOneLine(quoteName(r.name()))) + "\n")
	state := workflowStateCell(r.Info)
	parent := ""
	if r.Parent != "" {
		parent = nameOfRun(r.path, r.Parent)
	}
	writeFacts(&b, style, [][2]string{
		{"kind", quoteName(r.Kind)},
		{"state", fmt.Sprintf("%s, since %s (%s)", state.text, formatTime(r.ChangedAt),
			formatAge(now.Sub(r.ChangedAt)))},
		{"started", formatTime(r.StartedAt)}, {"parent", shortenText(parent)}, {"member", formatTaken(r.Info)},
		{"input", shortenJSON(r.Input)},
		{"signals", joinNames(r.Signals)}, {"failures", formatCount(r.Failures)}, {"error", r.Error},
	})
	if _, err := io.WriteString(w, b.String()+"\n"); err != nil {
		return err
	}
	if err := stepTable(r.Info).printTo(w); err != nil {
		return err
	}
	for _, g := range workflow.GraphsIn(r.Steps) {
		done := 0
		for _, s := range g.Steps {
			if s.Done {
				done++
			}
		}
		title := fmt.Sprintf("graph %s: %d of %d steps done", quoteName(g.Name), done, len(g.Steps))
		if _, err := io.WriteString(w, "\n"+style.Bold(inOneLine(title))+"\n\n"); err != nil {
			return err
		}
		if err := graphTable(r.Info, g).printTo(w); err != nil {
			return err
		}
	}
	return nil
}

// deepestIndent is how many levels of a graph are indented.
const deepestIndent = 12

// graphTable is a picture of a graph: each step below the steps that it comes after, indented by
// its level.
func graphTable(r workflow.Info, g workflow.GraphProgress) *table {
	t := newTable("", "", "STEP OF THE GRAPH", "AFTER", "WAITS FOR")
	for _, s := range g.Steps {
		t.addRow(dimCell("├─"), graphStateCell(r, s),
			boldCell(strings.Repeat("  ", min(s.Level, deepestIndent))+shortenText(s.Name)),
			dimCell(shortenText(strings.Join(s.After, ", "))), plainCell(shortenText(strings.Join(s.WaitsFor, ", "))))
	}
	t.rows[len(t.rows)-1][0].text = "└─"
	return t
}

// graphStateCell is the state of a step of a graph. What is stored does not distinguish a step
// under way from one that is about to begin.
func graphStateCell(r workflow.Info, s workflow.GraphStepProgress) cell {
	switch {
	case s.Done:
		return greenCell("done")
	case r.State.IsFinished():
		return redCell("not done")
	case len(s.WaitsFor) > 0:
		return dimCell("waiting")
	case r.State == workflow.Active && r.Taken != nil:
		return yellowCell("under way")
	}
	return yellowCell("next")
}

func joinNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteName(name)
	}
	return strings.Join(quoted, ", ")
}

// shortenJSON is the beginning of JSON. It adds no quotes: a table escapes the text.
func shortenJSON(data json.RawMessage) string { return cutText(string(data)) }

// stepTable is a picture of a run: its finished steps in their order, and what comes next.
func stepTable(r workflow.Info) *table {
	t := newTable("", "", "STEP", "TOOK", "ATTEMPTS", "RECORDED", "RESULT")
	graphs := workflow.GraphsIn(r.Steps)
	for _, s := range r.Steps {
		if slices.ContainsFunc(graphs, func(g workflow.GraphProgress) bool { return g.RecordName() == s.Name }) {
			continue // graphTable shows it
		}
		attempts := ""
		if s.Attempts > 1 {
			attempts = strconv.Itoa(s.Attempts)
		}
		t.addRow(dimCell("├─"), greenCell("done"), boldCell(shortenText(s.Name)), plainCell(s.Took.String()),
			yellowCell(attempts), dimCell(formatTime(s.RecordedAt)),
			plainCell(shortenJSON(s.Result)))
	}
	end := func(what cell, text, result string) {
		t.addRow(dimCell("├─"), what, plainCell(text), plainCell(""), plainCell(""), plainCell(""), plainCell(result))
	}
	switch r.State {
	case workflow.Active:
		switch {
		case r.Taken != nil:
			end(greenCell("running"), "since "+formatTime(r.Taken.At), "")
		case r.TakenErr != nil:
			end(yellowCell("active"), "lockstep cannot read whether a member has it", "")
		default:
			end(yellowCell("queued"), "until a member with the kind takes it", "")
		}
	case workflow.Waiting:
		for _, wait := range r.Waits {
			end(yellowCell("waiting"), "for "+wait, "")
		}
	case workflow.Done:
		end(greenCell("done"), "the run", shortenJSON(r.Result))
	case workflow.Failed:
		end(redCell("failed"), shortenText(r.Error), "")
	default:
		end(yellowCell(string(r.State)), shortenText(r.Error), "")
	}
	t.rows[len(t.rows)-1][0].text = "└─"
	return t
}

// workflowJSON is a run as JSON. Inputs and results that are not UTF-8 are in base64, too.
type workflowJSON struct {
	ID          string             `json:"id"`
	Path        string             `json:"path"` // of its workflows, and its id
	Kind        string             `json:"kind"`
	State       workflow.State     `json:"state"`
	Input       json.RawMessage    `json:"input"`
	InputBytes  []byte             `json:"input_base64,omitempty"`
	Result      json.RawMessage    `json:"result,omitempty"`
	ResultBytes []byte             `json:"result_base64,omitempty"`
	Error       string             `json:"error,omitempty"`
	Failures    int                `json:"failures"`
	Waits       []string           `json:"waits,omitempty"`
	Parent      string             `json:"parent,omitempty"`
	Started     time.Time          `json:"started"`
	Changed     time.Time          `json:"changed"`
	Session     *locks.SessionID   `json:"session,omitempty"` // of the member that has the run
	Member      string             `json:"member,omitempty"`  // its identity, by default host and process
	Taken       *time.Time         `json:"taken,omitempty"`
	Steps       []workflowStepJSON `json:"steps,omitempty"`
	Signals     []string           `json:"signals,omitempty"`
	Graphs      []graphJSON        `json:"graphs,omitempty"`
}

// graphJSON is a graph of a run, its steps in an order in which they may run.
type graphJSON struct {
	Name  string          `json:"name"`
	Steps []graphStepJSON `json:"steps"`
}

type graphStepJSON struct {
	Name     string   `json:"name"`
	After    []string `json:"after,omitempty"`
	State    string   `json:"state"` // as the picture says
	WaitsFor []string `json:"waits_for,omitempty"`
}

type workflowStepJSON struct {
	Name        string          `json:"name"`
	Result      json.RawMessage `json:"result"`
	ResultBytes []byte          `json:"result_base64,omitempty"`
	Token       int64           `json:"token"`
	Attempts    int             `json:"attempts"`
	TookMillis  int64           `json:"took_ms"`
	Recorded    time.Time       `json:"recorded"`
}

func workflowView(r listedRun) workflowJSON {
	v := workflowJSON{
		ID: r.ID, Path: znode.Join(r.path, r.ID), Kind: r.Kind, State: r.State, Input: r.Input,
		InputBytes: bytesIfInvalid(string(r.Input)), Result: r.Result, ResultBytes: bytesIfInvalid(string(r.Result)),
		Error: r.Error, Failures: r.Failures, Waits: r.Waits, Parent: r.Parent, Started: r.StartedAt.UTC(),
		Changed: r.ChangedAt.UTC(), Signals: r.Signals,
	}
	if r.Taken != nil {
		session := locks.SessionID(r.Taken.Session)
		v.Session, v.Member, v.Taken = &session, r.Taken.Member, knownTime(r.Taken.At.UTC())
	}
	for _, s := range r.Steps {
		v.Steps = append(v.Steps, workflowStepJSON{s.Name, s.Result, bytesIfInvalid(string(s.Result)), s.Token,
			s.Attempts, s.Took.Milliseconds(), s.RecordedAt.UTC()})
	}
	for _, g := range workflow.GraphsIn(r.Steps) {
		shown := graphJSON{Name: g.Name}
		for _, s := range g.Steps {
			shown.Steps = append(shown.Steps,
				graphStepJSON{s.Name, s.After, graphStateCell(r.Info, s).text, s.WaitsFor})
		}
		v.Graphs = append(v.Graphs, shown)
	}
	return v
}
