//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/testkit/tally"
)

// summary is the result of a run.
type summary struct {
	mu sync.Mutex

	Seed       uint64                      `json:"seed"`
	Seconds    float64                     `json:"seconds"`
	Bursts     int                         `json:"bursts"`
	Operations tally.Counters[requestKind] `json:"operations"` // granted or done
	Missed     tally.Counters[requestKind] `json:"missed"`     // abandoned, or refused
	Ends       tally.Counters[endReason]   `json:"ends"`       // of holds and deliveries
	Faults     tally.Counters[string]      `json:"faults"`
	// faults that cannot be injected here, and why
	OmittedFaults []string `json:"left_out"`
	// of any process, after the faults of a burst were healed
	LongestStall float64 `json:"longest_seconds_without_progress"`
	LongestRest  float64 `json:"longest_seconds_until_rest"`
	Checked      int     `json:"checked_operations"`
	LongestCheck float64 `json:"longest_check_seconds"`
	MaxHarnessMB float64 `json:"most_mb_harness"`
	MaxClientMB  float64 `json:"most_mb_client"`
	Violations   int     `json:"violations"`

	began time.Time
}

func newSummary(seed uint64) *summary {
	return &summary{Seed: seed, Operations: tally.Counters[requestKind]{}, Missed: tally.Counters[requestKind]{},
		Ends: tally.Counters[endReason]{}, Faults: tally.Counters[string]{},
		OmittedFaults: []string{}, began: time.Now()}
}

func (s *summary) addOperation(k requestKind) { increment(s, s.Operations, k) }
func (s *summary) addMissed(k requestKind)    { increment(s, s.Missed, k) }
func (s *summary) addEnd(h endReason)         { increment(s, s.Ends, h) }
func (s *summary) addFault(name string)       { increment(s, s.Faults, name) }

func increment[K comparable](s *summary, in map[K]int, k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[k]++
}

// holdsLostSafely counts holds that ended before their holders released them.
func (s *summary) holdsLostSafely() int { return s.Ends[endLost] + s.Ends[endProcessDied] }

// progressLine returns the summary in one line.
func (s *summary) progressLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%v: %d bursts, %d faults, %d operations, %d holds lost, %d violations",
		time.Since(s.began).Round(time.Second), s.Bursts,
		s.Faults.Sum(), s.Operations.Sum(), s.holdsLostSafely(), s.Violations)
}

func (s *summary) print(to io.Writer) {
	fmt.Fprintf(to, "%s (seed %d)\n", s.progressLine(), s.Seed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range [][2]string{
		{"operations", s.Operations.String()}, {"abandoned", s.Missed.String()}, {"ends", s.Ends.String()},
		{"faults", s.Faults.String()},
		{"omitted faults", strings.Join(s.OmittedFaults, ", ")},
		{"holds lost safely", fmt.Sprint(s.holdsLostSafely())},
		{"longest time without progress after the last fault was healed", fmt.Sprintf("%.1f s", s.LongestStall)},
		{"longest time until all clients had stopped", fmt.Sprintf("%.1f s", s.LongestRest)},
		{"checked", fmt.Sprintf("%d operations, at most %.1f s for a segment", s.Checked, s.LongestCheck)},
		{"memory", fmt.Sprintf("at most %.0f MB in the harness, %.0f MB in a client", s.MaxHarnessMB, s.MaxClientMB)},
	} {
		fmt.Fprintf(to, "%s: %s\n", row[0], row[1])
	}
}

func (s *summary) printJSON(to io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
