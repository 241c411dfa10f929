package main

import (
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/scheduler"
)

// findingJSON is a finding as JSON: a problem with a job, a lock or a queue.
type findingJSON struct {
	Subject string     `json:"subject,omitempty"` // what has the problem: a job's name, a path
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since,omitempty"`
	Text    string     `json:"text"`
	Advice  string     `json:"advice,omitempty"`
}

// findingPrinter prints a line for each finding, and counts the findings.
type findingPrinter struct {
	streams *Streams
	json    bool
	count   int
}

func (p *findingPrinter) addJob(subject string, r scheduler.JobReport) error {
	for _, f := range r.Findings {
		if err := p.add(findingJSON{Subject: subject, Problem: string(f.Problem), Since: knownTime(f.Since),
			Text: f.Text}); err != nil {
			return err
		}
	}
	return nil
}

func (p *findingPrinter) add(f findingJSON) error {
	p.count++
	style, text := terminal.For(p.streams.Out), inOneLine(f.Text)
	if f.Advice != "" {
		text += "; " + inOneLine(f.Advice)
	}
	return printResult(p.streams.Out, p.json, f, style.Bold(inOneLine(f.Subject)), style.Red(inOneLine(f.Problem)),
		text)
}

// formatNumber is a number of things.
func formatNumber(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// exitCode makes the program end with 1 if there is a finding. Otherwise it prints what was
// checked.
func (p *findingPrinter) exitCode(checked string) error {
	if p.count > 0 {
		return exitSilently(exitNotObtained)
	}
	if !p.json {
		p.streams.printNotice("nothing wrong: %s", checked)
	}
	return nil
}
