package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
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
func (rec *recorder) items() int  { return rec.reported.Rounds * rec.job.total() }
func (rec *recorder) want() int64 { return int64(rec.reported.Rounds) * rec.job.sum() }

func (rec *recorder) summary() summary {
	return summary{
		Rounds: rec.reported.Rounds, Sum: rec.reported.Sum, Want: rec.want(), Workers: rec.job.Workers,
		Items:      rec.items(),
		Deliveries: rec.deliveries, Returned: rec.returned, Repeated: rec.repeated,
		Kills: rec.kills, Terms: rec.terms, TookMs: rec.elapsed.Milliseconds(),
	}
}

// verdict returns an error that lists all violations.
func (rec *recorder) verdict() error {
	var errs []error
	if want := rec.want(); rec.reported.Sum != want {
		errs = append(errs, fmt.Errorf("the sum is %d, but must be %d", rec.reported.Sum, want))
	}
	if len(rec.kills) != rec.wantedKills {
		errs = append(errs, fmt.Errorf("%d workers were killed, but %d had to be", len(rec.kills), rec.wantedKills))
	}
	errs = append(errs, rec.violations...)
	errs = append(errs, rec.duplicateWork()...)
	errs = append(errs, demo.CheckTokensRise(rec.terms, func(t term) int64 { return t.Token }))
	return errors.Join(errs...)
}

func (rec *recorder) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(rec.summary()) }

// maxShownTerms is how many terms the report shows. It shows the latest ones.
const maxShownTerms = 20

// writeReport writes the report as text.
func (rec *recorder) writeReport() {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(rec.Out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(rec.Out, "\n%s\n", rec.Bold("Report"))
	for p, phase := range phases {
		line(map[bool]string{true: "phases"}[p == 0],
			"%-8s %d items a round; %d workers met at the end of the last", phase.name, rec.job.Items, rec.met[p])
	}
	line("killed", "%d workers, %d of them leading; each was replaced", len(rec.kills), rec.killedLeaders())
	line("deliveries", "%d for %d items: %d again after a death, %d of these with a result", rec.deliveries,
		rec.items(), rec.returned, rec.repeated)
	for i, t := range rec.terms[max(0, len(rec.terms)-maxShownTerms):] {
		line(map[bool]string{true: "terms"}[i == 0], "%s with token %d", t.Leader, t.Token)
	}
	line("reported", "by %s, after %v", rec.reported.Leader, rec.elapsed.Round(time.Millisecond))
	line("sum", "%d, of %d rounds", rec.reported.Sum, rec.reported.Rounds)
	if rec.verdict() == nil {
		fmt.Fprintf(rec.Out, "\n%s the sum is the one that a single process computes.\n", rec.Green("Held:"))
	}
}
