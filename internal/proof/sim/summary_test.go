package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-go/lockstep/internal/testkit/tally"
)

// summary is the result of many seeds.
type summary struct {
	Seeds      int                       `json:"seeds"`
	Failed     []uint64                  `json:"failed"`
	Hours      float64                   `json:"virtual_hours"`
	Seconds    float64                   `json:"seconds"`
	Events     int                       `json:"events"`
	Faults     tally.Counters[faultKind] `json:"faults"`
	Operations tally.Counters[string]    `json:"operations"`

	began time.Time
}

func newSummary() *summary {
	return &summary{Failed: []uint64{}, Faults: tally.Counters[faultKind]{}, Operations: tally.Counters[string]{},
		began: time.Now()}
}

func (s *summary) add(r result) {
	s.Seeds++
	s.Hours += r.plan.duration.Hours()
	s.Seconds = time.Since(s.began).Seconds()
	s.Events += len(r.history.all())
	for k, n := range r.faults {
		s.Faults[k] += n
	}
	for what, n := range r.operations {
		s.Operations[what] += n
	}
	if len(r.violations) > 0 {
		s.Failed = append(s.Failed, r.plan.seed)
	}
}

// progressLine is a summary in one line.
func (s *summary) progressLine(of int) string {
	return fmt.Sprintf("%d of %d seeds, %d failed, %.1f virtual hours, %d faults, %.0f s", s.Seeds, of, len(s.Failed),
		s.Hours, s.Faults.Sum(), s.Seconds)
}

func (s *summary) print(to io.Writer) {
	fmt.Fprintln(to, s.progressLine(s.Seeds))
	fmt.Fprintln(to, "faults:    ", s.Faults)
	fmt.Fprintln(to, "operations:", s.Operations)
}

func (s *summary) printJSON(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
