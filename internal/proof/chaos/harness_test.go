//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// harness is one run of bursts.
type harness struct {
	t            *testing.T
	env          *testEnv
	history      *history
	checker      *checker
	summary      *summary
	rng          *rand.Rand
	interactive  bool
	naiveServers []int // the server of each naive client
}

func newHarness(t *testing.T, seed uint64, diskMB int) *harness {
	t.Helper()
	summary := newSummary(seed)
	history := newHistory(summary)
	return &harness{t: t, env: newTestEnv(t, diskMB, history), history: history, checker: newChecker(evidenceDir(t)),
		summary: summary,
		rng:     rand.New(rand.NewPCG(seed, 5)), interactive: terminal.Is(os.Stderr)}
}

// evidenceDir returns the directory for violations. It is removed if it stays empty.
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
	t.Cleanup(func() { _ = os.Remove(dir) }) // fails if it has files
	return dir
}

// runBurst runs one segment of the history with faults, and returns its violations. It requires
// that the goals, if any, make progress after the faults.
func (r *harness) runBurst(ctx context.Context, number int, faults []scheduledFault, goals []string) (wrong []error) {
	r.env.sendOrder(fmt.Sprint("faults ", number))
	wait(ctx, time.Duration(r.rng.Int64N(int64(2*time.Second))), nil)
	stopOperating := r.env.startOperator(ctx, rand.New(rand.NewPCG(r.rng.Uint64(), 19)))
	if err := r.env.injectAll(ctx, faults, r.summary); err != nil {
		wrong = append(wrong, err)
	}
	if err := r.env.restore(); err != nil {
		return append(wrong, errors.Join(err, stopOperating(), r.abandonSegment(number)))
	}
	if err := stopOperating(); err != nil {
		wrong = append(wrong, err)
	}
	r.history.faultsHealed()
	r.showProgress("all faults are healed")
	r.env.sendOrder(fmt.Sprint("work ", number))
	if goals != nil {
		elapsed, err := r.env.awaitProgress(goals)
		r.summary.LongestStall = max(r.summary.LongestStall, elapsed.Seconds())
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	r.showProgress("stopping the clients")
	began := time.Now()
	drained, err := r.env.drainAndRest(number)
	if err != nil {
		wrong = append(wrong, err)
	}
	r.summary.LongestRest = max(r.summary.LongestRest, time.Since(began).Seconds())
	if r.env.observer != nil { // naive clients leave nothing to compare
		if err := r.env.checkServersAgree(workloadPaths()); err != nil {
			wrong = append(wrong, err)
		}
	}
	return r.checkSegment(number, drained, wrong)
}

// abandonSegment stops all clients after the servers did not recover, and writes the history.
func (r *harness) abandonSegment(number int) error {
	r.env.sendOrder(fmt.Sprint("rest ", number))
	r.checker.writeEvidence(fmt.Sprintf("segment-%d-history.txt", number),
		strings.Join(r.history.takeSegment().lines, "\n")+"\n")
	return errors.New("the servers did not recover, so this segment's holds are not checked")
}

// checkSegment checks the segment and updates the summary. It returns the violations, also those
// that the burst has found.
func (r *harness) checkSegment(number int, drained map[string]drainedQueue, found []error) []error {
	began := time.Now()
	s := r.history.takeSegment()
	s.errors = slices.Concat(found, s.errors)
	s.atRest, r.env.atRest = r.env.atRest, nil
	s.runs, r.env.runs = r.env.runs, nil
	wrong := r.checker.checkSegment(number, s, drained)
	r.summary.mu.Lock()
	defer r.summary.mu.Unlock()
	r.summary.Bursts++
	r.summary.Checked, r.summary.Violations = r.checker.checkedOperations, r.summary.Violations+len(wrong)
	r.summary.LongestCheck = max(r.summary.LongestCheck, time.Since(began).Seconds())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.summary.MaxHarnessMB = max(r.summary.MaxHarnessMB, float64(m.HeapAlloc)/1e6)
	for _, c := range r.env.clients {
		r.summary.MaxClientMB = max(r.summary.MaxClientMB, residentMB(c.current().cmd.Process.Pid))
	}
	return wrong
}

// residentMB returns the resident memory of a process, or 0 if it has ended.
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

// reportViolations prints violations, their evidence files, and the seed.
func (r *harness) reportViolations(wrong []error) {
	r.clearProgress()
	var text strings.Builder
	for _, err := range wrong {
		fmt.Fprintln(&text, err)
	}
	for i := range r.env.Size() {
		r.checker.writeEvidence(fmt.Sprintf("server-%d.log", i), r.env.Log(i))
	}
	for _, file := range r.checker.evidenceFiles {
		fmt.Fprintln(&text, "evidence:", file)
	}
	fmt.Fprint(os.Stderr, text.String()) // at once: stopping the clients may take long
	r.t.Errorf("seed %d: %d violations, printed above", r.summary.Seed, len(wrong))
}

// showProgress updates the progress line on a terminal.
func (r *harness) showProgress(doing string) {
	if r.interactive {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s; %s", r.summary.progressLine(), doing)
	}
}

func (r *harness) clearProgress() {
	if r.interactive {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// printSummary prints the summary as text or JSON.
func (r *harness) printSummary() {
	r.clearProgress()
	r.summary.Seconds = time.Since(r.summary.began).Seconds()
	if *asJSON {
		if err := r.summary.printJSON(os.Stdout); err != nil {
			r.t.Error(err)
		}
		return
	}
	r.summary.print(os.Stdout)
}

// stopClients stops all clients in an orderly way.
func (r *harness) stopClients() {
	for _, c := range r.env.clients {
		c.stop()
	}
	r.env.clients = nil
	if wrong := r.history.takeSegment().errors; len(wrong) > 0 {
		r.reportViolations(wrong)
	}
}
