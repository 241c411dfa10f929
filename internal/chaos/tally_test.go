//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/counts"
)

// tally is what a run has come to.
type tally struct {
	mu sync.Mutex

	Seed       uint64            `json:"seed"`
	Seconds    float64           `json:"seconds"`
	Bursts     int               `json:"bursts"`
	Operations counts.By[kind]   `json:"operations"` // granted or done
	Missed     counts.By[kind]   `json:"missed"`     // given up, or refused for a reason
	Ends       counts.By[how]    `json:"ends"`       // of holds and deliveries
	Faults     counts.By[string] `json:"faults"`
	LeftOut    []string          `json:"left_out"`                         // faults that cannot be made here, and why
	Stall      float64           `json:"longest_seconds_without_progress"` // of anybody, after the last fault of a burst was healed
	Rest       float64           `json:"longest_seconds_until_rest"`
	Checked    int               `json:"checked_operations"`
	Check      float64           `json:"longest_check_seconds"`
	HeapMB     float64           `json:"most_mb_harness"`
	ClientMB   float64           `json:"most_mb_client"`
	Violations int               `json:"violations"`

	began time.Time
}

func newTally(seed uint64) *tally {
	return &tally{Seed: seed, Operations: counts.By[kind]{}, Missed: counts.By[kind]{}, Ends: counts.By[how]{}, Faults: counts.By[string]{},
		LeftOut: []string{}, began: time.Now()}
}

func (t *tally) operation(k kind)  { count(t, t.Operations, k) }
func (t *tally) miss(k kind)       { count(t, t.Missed, k) }
func (t *tally) end(h how)         { count(t, t.Ends, h) }
func (t *tally) fault(name string) { count(t, t.Faults, name) }

func count[K comparable](t *tally, in map[K]int, k K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in[k]++
}

// safely is how many holds ended before their holders wanted.
func (t *tally) safely() int { return t.Ends[lost] + t.Ends[died] }

// line is how far it is.
func (t *tally) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%v: %d bursts, %d faults, %d operations, %d holds lost, %d violations", time.Since(t.began).Round(time.Second), t.Bursts,
		t.Faults.Sum(), t.Operations.Sum(), t.safely(), t.Violations)
}

func (t *tally) print(to io.Writer) {
	fmt.Fprintf(to, "%s (seed %d)\n", t.line(), t.Seed)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range [][2]string{
		{"operations", t.Operations.String()}, {"given up", t.Missed.String()}, {"ends", t.Ends.String()}, {"faults", t.Faults.String()},
		{"left out", strings.Join(t.LeftOut, ", ")},
		{"holds lost safely", fmt.Sprint(t.safely())},
		{"longest time without progress after the last fault was healed", fmt.Sprintf("%.1f s", t.Stall)},
		{"longest time until all rested", fmt.Sprintf("%.1f s", t.Rest)},
		{"checked", fmt.Sprintf("%d operations, a segment in %.1f s at most", t.Checked, t.Check)},
		{"memory", fmt.Sprintf("harness %.0f MB, a client %.0f MB at most", t.HeapMB, t.ClientMB)},
	} {
		fmt.Fprintf(to, "%s: %s\n", row[0], row[1])
	}
}

func (t *tally) printJSON(to io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(t)
}
