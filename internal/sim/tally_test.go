package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-go/lockstep/internal/tally"
)

// seedTotals adds up the results of many seeds.
type seedTotals struct {
	Seeds      int                    `json:"seeds"`
	Failed     []uint64               `json:"failed"`
	Hours      float64                `json:"virtual_hours"`
	Seconds    float64                `json:"seconds"`
	Events     int                    `json:"events"`
	Faults     tally.Counters[kind]   `json:"faults"`
	Operations tally.Counters[string] `json:"operations"`

	began time.Time
}

func newSeedTotals() *seedTotals {
	return &seedTotals{Failed: []uint64{}, Faults: tally.Counters[kind]{}, Operations: tally.Counters[string]{}, began: time.Now()}
}

func (t *seedTotals) add(r result) {
	t.Seeds++
	t.Hours += r.plan.length.Hours()
	t.Seconds = time.Since(t.began).Seconds()
	t.Events += len(r.history.all())
	for k, n := range r.struck {
		t.Faults[k] += n
	}
	for what, n := range r.did {
		t.Operations[what] += n
	}
	if len(r.violations) > 0 {
		t.Failed = append(t.Failed, r.plan.seed)
	}
}

// line is how far it is.
func (t *seedTotals) line(of int) string {
	return fmt.Sprintf("%d of %d seeds, %d failed, %.1f virtual hours, %d faults, %.0f s", t.Seeds, of, len(t.Failed), t.Hours, t.Faults.Sum(), t.Seconds)
}

func (t *seedTotals) print(to io.Writer) {
	fmt.Fprintln(to, t.line(t.Seeds))
	fmt.Fprintln(to, "faults:    ", t.Faults)
	fmt.Fprintln(to, "operations:", t.Operations)
}

func (t *seedTotals) printJSON(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(t)
}
