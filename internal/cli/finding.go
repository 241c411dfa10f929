package cli

import "github.com/lockstep-go/lockstep/internal/terminal"

// FindingPrinter prints a line for each finding, and counts the findings.
type FindingPrinter struct {
	Streams *Streams
	JSON    bool
	Count   int
}

// Add prints a finding: view as JSON, or else what has the problem (a job's name, a path), the
// problem and the text.
func (p *FindingPrinter) Add(view any, subject, problem, text string) error {
	p.Count++
	style := terminal.For(p.Streams.Out)
	return PrintResult(p.Streams.Out, p.JSON, view, style.Bold(InOneLine(subject)), style.Red(InOneLine(problem)),
		InOneLine(text))
}

// ExitCode makes the program end with 1 if there is a finding. Otherwise it prints what was
// checked.
func (p *FindingPrinter) ExitCode(checked string) error {
	if p.Count > 0 {
		return ExitSilently(ExitFound)
	}
	if !p.JSON {
		p.Streams.PrintNotice("nothing wrong: %s", checked)
	}
	return nil
}
