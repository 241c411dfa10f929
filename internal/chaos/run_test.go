//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// run is one run of the harness.
type run struct {
	t      *testing.T
	arena  *arena
	record *record
	judge  *judge
	tally  *tally
	rand   *rand.Rand
	show   bool
	homes  []int // of naive clients: their servers
}

func newRun(t *testing.T, seed uint64, diskMB int) *run {
	t.Helper()
	tally := newTally(seed)
	record := newRecord(tally)
	return &run{t: t, arena: newArena(t, diskMB, record), record: record, judge: newJudge(evidenceDir(t)), tally: tally,
		rand: rand.New(rand.NewPCG(seed, 5)), show: terminal.Is(os.Stderr)}
}

// evidenceDir is where a violation is written. One that stays empty is removed.
func evidenceDir(t *testing.T) string {
	t.Helper()
	dir := *evidence
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "lockstep-chaos-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // fails when there is something in it
	return dir
}

// burst lets a segment of the history happen, with faults, and returns what is wrong with it. goals are what somebody
// must get after that; nil asks for no progress.
func (r *run) burst(ctx context.Context, number int, blows []blow, goals []string) (wrong []error) {
	r.arena.order(fmt.Sprint("storm ", number))
	pass(ctx, time.Duration(r.rand.Int64N(int64(2*time.Second))), nil)
	stopOperating := r.arena.operate(ctx, rand.New(rand.NewPCG(r.rand.Uint64(), 19)))
	if err := r.arena.strike(ctx, blows, r.tally); err != nil {
		wrong = append(wrong, err)
	}
	if err := r.arena.restore(); err != nil {
		return append(wrong, errors.Join(err, stopOperating(), r.giveUp(number)))
	}
	if err := stopOperating(); err != nil {
		wrong = append(wrong, err)
	}
	r.record.heal()
	r.progress("all is healed")
	r.arena.order(fmt.Sprint("work ", number))
	if goals != nil {
		took, err := r.arena.recover(goals)
		r.tally.Stall = max(r.tally.Stall, took.Seconds())
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	r.progress("coming to rest")
	began := time.Now()
	sights, err := r.arena.settle(number)
	if err != nil {
		wrong = append(wrong, err)
	}
	r.tally.Rest = max(r.tally.Rest, time.Since(began).Seconds())
	return append(wrong, r.check(number, sights)...)
}

// giveUp stops everybody where the servers do not come back, and keeps the history.
func (r *run) giveUp(number int) error {
	r.arena.order(fmt.Sprint("rest ", number))
	r.judge.write(fmt.Sprintf("segment-%d-history.txt", number), strings.Join(r.record.cut().lines, "\n")+"\n")
	return errors.New("what was held meanwhile is not judged")
}

// check judges the segment, and takes the measures.
func (r *run) check(number int, sights map[string]seen) []error {
	began := time.Now()
	wrong := r.judge.judge(number, r.record.cut(), sights)
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	r.tally.Bursts++
	r.tally.Checked, r.tally.Violations = r.judge.checked, r.tally.Violations+len(wrong)
	r.tally.Check = max(r.tally.Check, time.Since(began).Seconds())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.tally.HeapMB = max(r.tally.HeapMB, float64(m.HeapAlloc)/1e6)
	for _, c := range r.arena.clients {
		r.tally.ClientMB = max(r.tally.ClientMB, residentMB(c.present().cmd.Process.Pid))
	}
	return wrong
}

// residentMB is the memory of a process, 0 if it is gone.
func residentMB(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1e3
		}
	}
	return 0
}

// fail tells of violations, where they are shown, and how to come here again.
func (r *run) fail(wrong []error) {
	r.clear()
	var text strings.Builder
	for _, err := range wrong {
		fmt.Fprintln(&text, err)
	}
	for _, place := range r.judge.places {
		fmt.Fprintln(&text, "shown in", place)
	}
	fmt.Fprint(os.Stderr, text.String()) // at once: the rest of the test may take its time
	r.t.Errorf("seed %d: %d violations, told above", r.tally.Seed, len(wrong))
}

// progress shows on a terminal how far it is.
func (r *run) progress(doing string) {
	if r.show {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s; %s", r.tally.line(), doing)
	}
}

func (r *run) clear() {
	if r.show {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// report prints the summary.
func (r *run) report() {
	r.clear()
	r.tally.Seconds = time.Since(r.tally.began).Seconds()
	if *asJSON {
		if err := r.tally.printJSON(os.Stdout); err != nil {
			r.t.Error(err)
		}
		return
	}
	r.tally.print(os.Stdout)
}

// end sends all clients home, in an orderly way.
func (r *run) end() {
	for _, c := range r.arena.clients {
		c.end()
	}
	r.arena.clients = nil
	if wrong := r.record.cut().faults; len(wrong) > 0 {
		r.fail(wrong)
	}
}
