package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
)

// workflowTable is one line for each run.
func workflowTable(runs []shownRun, now time.Time) *table {
	t := newTable("RUN", "KIND", "STATE", "SINCE", "LAST STEP", "FAILURES", "WAITS FOR", "SESSION", "ERROR")
	for _, r := range runs {
		last := ""
		if len(r.Steps) > 0 {
			last = shortenText(r.Steps[len(r.Steps)-1].Name)
		}
		t.addRow(boldCell(shortenText(r.ID)), plainCell(shortenText(r.Kind)), workflowStateCell(r), plainCell(formatAge(now.Sub(r.ChangedAt))), plainCell(last),
			yellowCell(formatPositive(r.Failures)), plainCell(strings.Join(r.Waits, " or ")), plainCell(formatClaim(r)), redCell(shortenText(r.Error)))
	}
	return t
}

// workflowStateCell is where a run is in its life. What is alarming is the brightest.
func workflowStateCell(r shownRun) cell {
	text := string(r.State)
	switch r.State {
	case workflow.Active:
		if r.claim == nil {
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

// formatClaim is the session of the member that has a run.
func formatClaim(r shownRun) string {
	if r.claim == nil {
		return ""
	}
	return locks.SessionID(r.claim.Session).String()
}

// printWorkflow prints a run and a picture of its steps.
func printWorkflow(w io.Writer, r shownRun, now time.Time) error {
	var style terminal.Style
	if f, ok := w.(*os.File); ok {
		style = terminal.For(f)
	}
	var b strings.Builder
	b.WriteString(style.Bold(inOneLine(quoteName(r.ID))) + "\n")
	state := workflowStateCell(r)
	for _, line := range [][2]string{
		{"kind", quoteName(r.Kind)}, {"state", fmt.Sprintf("%s, since %s (%s)", state.text, formatTime(r.ChangedAt), formatAge(now.Sub(r.ChangedAt)))},
		{"started", formatTime(r.StartedAt)}, {"parent", shortenText(r.Parent)}, {"session", formatClaim(r)}, {"input", shortenJSON(r.Input)},
		{"signals", joinNames(r.Signals)}, {"failures", formatPositive(r.Failures)}, {"error", r.Error},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "  %s %s\n", style.Dim(fmt.Sprintf("%-10s", line[0])), inOneLine(line[1]))
		}
	}
	if _, err := io.WriteString(w, b.String()+"\n"); err != nil {
		return err
	}
	return stepTable(r).printTo(w)
}

func joinNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteName(name)
	}
	return strings.Join(quoted, ", ")
}

// shortenJSON is the beginning of JSON, which a line escapes: its quotes are its own.
func shortenJSON(data json.RawMessage) string {
	if text := []rune(string(data)); len(text) > briefest {
		return string(text[:briefest-1]) + "…"
	}
	return string(data)
}

// stepTable is a picture of a run: its finished steps in their order, and what comes next.
func stepTable(r shownRun) *table {
	t := newTable("", "", "STEP", "TOOK", "ATTEMPTS", "RECORDED", "RESULT")
	for _, s := range r.Steps {
		attempts := ""
		if s.Attempts > 1 {
			attempts = strconv.Itoa(s.Attempts)
		}
		t.addRow(dimCell("├─"), greenCell("done"), boldCell(shortenText(s.Name)), plainCell(s.Took.String()), yellowCell(attempts), dimCell(formatTime(s.RecordedAt)),
			plainCell(shortenJSON(s.Result)))
	}
	end := func(what cell, text, result string) {
		t.addRow(dimCell("├─"), what, plainCell(text), plainCell(""), plainCell(""), plainCell(""), plainCell(result))
	}
	switch r.State {
	case workflow.Active:
		if r.claim != nil {
			end(greenCell("running"), "since "+formatTime(r.claim.Since), "")
		} else {
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

// workflowJSON is a run as JSON. Inputs and results that are no UTF-8 are in base64, too.
type workflowJSON struct {
	ID          string             `json:"id"`
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
	Taken       *time.Time         `json:"taken,omitempty"`
	Steps       []workflowStepJSON `json:"steps,omitempty"`
	Signals     []string           `json:"signals,omitempty"`
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

func workflowView(r shownRun) workflowJSON {
	v := workflowJSON{
		ID: r.ID, Kind: r.Kind, State: r.State, Input: r.Input, InputBytes: bytesIfInvalid(string(r.Input)), Result: r.Result, ResultBytes: bytesIfInvalid(string(r.Result)),
		Error: r.Error, Failures: r.Failures, Waits: r.Waits, Parent: r.Parent, Started: r.StartedAt.UTC(), Changed: r.ChangedAt.UTC(), Signals: r.Signals,
	}
	if r.claim != nil {
		session := locks.SessionID(r.claim.Session)
		v.Session, v.Taken = &session, knownTime(r.claim.Since.UTC())
	}
	for _, s := range r.Steps {
		v.Steps = append(v.Steps, workflowStepJSON{s.Name, s.Result, bytesIfInvalid(string(s.Result)), s.Token, s.Attempts, s.Took.Milliseconds(), s.RecordedAt.UTC()})
	}
	return v
}
