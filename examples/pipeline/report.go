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
	Sum        int64  `json:"sum"`
	Want       int64  `json:"want"`
	Workers    int    `json:"workers"`
	Items      int    `json:"items"` // of all phases
	Deliveries int    `json:"deliveries"`
	Returned   int    `json:"returned"`
	Repeated   int    `json:"repeated"`
	Kills      []kill `json:"kills"`
	Terms      []term `json:"terms"`
	TookMs     int64  `json:"took_ms"`
}

func (j *journal) summary() summary {
	return summary{
		Sum: j.reported.Sum, Want: j.job.sum(), Workers: j.job.Workers, Items: j.job.total(),
		Deliveries: j.deliveries, Returned: j.returned, Repeated: j.repeated,
		Kills: j.kills, Terms: j.terms, TookMs: j.took.Milliseconds(),
	}
}

// verdict says what must not happen, and did.
func (j *journal) verdict() error {
	var errs []error
	if want := j.job.sum(); j.reported.Sum != want {
		errs = append(errs, fmt.Errorf("the sum is %d, but must be %d", j.reported.Sum, want))
	}
	if len(j.kills) != j.asked {
		errs = append(errs, fmt.Errorf("%d workers were killed, but %d had to be", len(j.kills), j.asked))
	}
	for p, n := range j.plans {
		if n > j.job.Items {
			errs = append(errs, fmt.Errorf("%d items of %q were put, but there are %d", n, phases[p].name, j.job.Items))
		}
	}
	for p, n := range j.results {
		if n > j.job.Items {
			errs = append(errs, fmt.Errorf("%d results of %q were stored, but there are %d", n, phases[p].name, j.job.Items))
		}
	}
	for i := 1; i < len(j.terms); i++ {
		if j.terms[i].Token <= j.terms[i-1].Token {
			errs = append(errs, fmt.Errorf("token %d follows %d: it did not rise", j.terms[i].Token, j.terms[i-1].Token))
		}
	}
	return errors.Join(errs...)
}

func (j *journal) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(j.summary()) }

// writeReport writes the report for people.
func (j *journal) writeReport() {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(j.out, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(j.out, "\n%s\n", j.style.Bold("Report"))
	for p, phase := range phases {
		line(map[bool]string{true: "phases"}[p == 0], "%-8s %d items; %d workers met at its end", phase.name, j.job.Items, j.met[p])
	}
	line("killed", "%d workers, %d of them leading; each was replaced", len(j.kills), j.leaders())
	line("deliveries", "%d of %d items: %d came back from the dead, %d of these with a result", j.deliveries, j.job.total(), j.returned, j.repeated)
	for i, t := range j.terms {
		line(map[bool]string{true: "terms"}[i == 0], "%s with token %d", t.Leader, t.Token)
	}
	line("reported", "by %s, after %v", j.reported.Leader, j.took.Round(time.Millisecond))
	line("sum", "%d", j.reported.Sum)
	if j.verdict() == nil {
		fmt.Fprintf(j.out, "\n%s it is the sum that one process alone computes.\n", j.style.Green("Held:"))
	}
}
