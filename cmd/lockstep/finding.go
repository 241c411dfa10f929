package main

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/scheduler"
)

// findingJSON is something that is wrong, as JSON.
type findingJSON struct {
	Subject string     `json:"subject,omitempty"` // what it is wrong with: a job's name, a path
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since,omitempty"`
	Text    string     `json:"text"`
	Advice  string     `json:"advice,omitempty"`
}

// findingPrinter prints what is wrong, a line for each finding, and counts.
type findingPrinter struct {
	json  bool
	count int
}

func (p *findingPrinter) addJob(subject string, r scheduler.JobReport) error {
	for _, f := range r.Findings {
		if err := p.add(findingJSON{Subject: subject, Problem: string(f.Problem), Since: knownTime(f.Since), Text: f.Text}); err != nil {
			return err
		}
	}
	return nil
}

func (p *findingPrinter) add(f findingJSON) error {
	p.count++
	style := terminal.For(os.Stdout)
	return printResult(os.Stdout, p.json, f, style.Bold(inOneLine(f.Subject)), style.Red(inOneLine(f.Problem)), inOneLine(f.Text))
}

// exitCode ends the program with 1 if something is wrong. Otherwise it prints what was checked.
func (p *findingPrinter) exitCode(looked string) error {
	if p.count > 0 {
		return exitSilently(exitNotObtained)
	}
	if !p.json {
		printNotice("nothing wrong: %s", looked)
	}
	return nil
}

// splitJoined returns the errors that errors.Join has joined, also several times.
func splitJoined(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, splitJoined(e)...)
	}
	return all
}

// inOneLine escapes what a terminal may obey, and the ends of lines.
func inOneLine(text string) string {
	return strings.ReplaceAll(escapeUnprintable(text), "\n", `\n`)
}
