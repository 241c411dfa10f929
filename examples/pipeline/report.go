package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// summary is the JSON that is printed.
type summary struct {
	Rounds     int    `json:"rounds"`
	Sum        int64  `json:"sum"`
	Want       int64  `json:"want"`
	Workers    int    `json:"workers"`
	Items      int    `json:"items"` // of all phases and rounds
	Deliveries int    `json:"deliveries"`
	Returned   int    `json:"returned"`
	Repeated   int    `json:"repeated"`
	Kills      []kill `json:"kills"`
	Terms      []term `json:"terms"`
	TookMs     int64  `json:"took_ms"`
}

// items is the number of items of all rounds, and want the correct sum.
func (j *journal) items() int  { return j.reported.Rounds * j.job.total() }
func (j *journal) want() int64 { return int64(j.reported.Rounds) * j.job.sum() }

func (j *journal) summary() summary {
	return summary{
		Rounds: j.reported.Rounds, Sum: j.reported.Sum, Want: j.want(), Workers: j.job.Workers, Items: j.items(),
		Deliveries: j.deliveries, Returned: j.returned, Repeated: j.repeated,
		Kills: j.kills, Terms: j.terms, TookMs: j.took.Milliseconds(),
	}
}

// verdict returns an error that lists all violations.
func (j *journal) verdict() error {
	var errs []error
	if want := j.want(); j.reported.Sum != want {
		errs = append(errs, fmt.Errorf("the sum is %d, but must be %d", j.reported.Sum, want))
	}
	if len(j.kills) != j.asked {
		errs = append(errs, fmt.Errorf("%d workers were killed, but %d had to be", len(j.kills), j.asked))
	}
	errs = append(errs, j.wrong...)
	errs = append(errs, j.overdone()...)
	for i := 1; i < len(j.terms); i++ {
		if j.terms[i].Token <= j.terms[i-1].Token {
			errs = append(errs, fmt.Errorf("token %d follows %d: it did not rise", j.terms[i].Token, j.terms[i-1].Token))
		}
	}
	return errors.Join(errs...)
}

func (j *journal) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(j.summary()) }

// mostTerms is how many terms the report shows: the last ones.
const mostTerms = 20

// writeReport writes the report as text.
func (j *journal) writeReport() {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(j.out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(j.out, "\n%s\n", j.style.Bold("Report"))
	for p, phase := range phases {
		line(map[bool]string{true: "phases"}[p == 0], "%-8s %d items a round; %d workers met at its last end", phase.name, j.job.Items, j.met[p])
	}
	line("killed", "%d workers, %d of them leading; each was replaced", len(j.kills), j.leaders())
	line("deliveries", "%d of %d items: %d came back from the dead, %d of these with a result", j.deliveries, j.items(), j.returned, j.repeated)
	for i, t := range j.terms[max(0, len(j.terms)-mostTerms):] {
		line(map[bool]string{true: "terms"}[i == 0], "%s with token %d", t.Leader, t.Token)
	}
	line("reported", "by %s, after %v", j.reported.Leader, j.took.Round(time.Millisecond))
	line("sum", "%d, of %d rounds", j.reported.Sum, j.reported.Rounds)
	if j.verdict() == nil {
		fmt.Fprintf(j.out, "\n%s it is the sum that one process alone computes.\n", j.style.Green("Held:"))
	}
}
