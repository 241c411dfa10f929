package cli

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/scheduler"
)

// FindingJSON is a finding as JSON: a problem with a job, a lock or a queue.
type FindingJSON struct {
	Subject string     `json:"subject,omitempty"` // what has the problem: a job's name, a path
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since,omitempty"`
	Text    string     `json:"text"`
	Advice  string     `json:"advice,omitempty"`
}

// FindingPrinter prints a line for each finding, and counts the findings.
type FindingPrinter struct {
	Streams *Streams
	JSON    bool
	Count   int
}

func (p *FindingPrinter) AddJob(subject string, r scheduler.JobReport) error {
	for _, f := range r.Findings {
		if err := p.Add(FindingJSON{Subject: subject, Problem: string(f.Problem), Since: KnownTime(f.Since),
			Text: f.Text}); err != nil {
			return err
		}
	}
	return nil
}

func (p *FindingPrinter) Add(f FindingJSON) error {
	p.Count++
	style, text := terminal.For(p.Streams.Out), InOneLine(f.Text)
	if f.Advice != "" {
		text += "; " + InOneLine(f.Advice)
	}
	return PrintResult(p.Streams.Out, p.JSON, f, style.Bold(InOneLine(f.Subject)), style.Red(InOneLine(f.Problem)),
		text)
}

// ExitCode makes the program end with 1 if there is a finding. Otherwise it prints what was
// checked.
func (p *FindingPrinter) ExitCode(checked string) error {
	if p.Count > 0 {
		return ExitSilently(ExitNotObtained)
	}
	if !p.JSON {
		p.Streams.PrintNotice("nothing wrong: %s", checked)
	}
	return nil
}
