package sim

import (
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// TestRunSeedsUntilRuleIsBroken runs seeds until one breaks a rule. mutation_test.go runs it with a
// mutant.
func TestRunSeedsUntilRuleIsBroken(t *testing.T) {
	if *untilRule == "" {
		return
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seedCount); seed++ {
		if r := run(t, newPlan(seed, chosenRecipes())); r.breaksRule(*untilRule) {
			t.Fatalf("%s seed %d, %v", caughtPrefix, seed, r.firstViolation(*untilRule))
		}
	}
}

// Input and output of TestRunSeedsUntilRuleIsBroken.
const (
	anyRule      = "any"
	caughtPrefix = "CAUGHT:"
)

// TestSeeds runs seeds. It stops after a few violations, or on an interrupt.
func TestSeeds(t *testing.T) {
	n, until := *seedCount, time.Time{}
	if n == 0 { // CI runs seeds for a fixed time
		d := ciTime
		if testing.Short() {
			d /= 2
		}
		n, until = 1000, time.Now().Add(d)
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	summary := newSummary()
	show := newProgress(os.Stderr)
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		if !until.IsZero() && time.Now().After(until) || len(summary.Failed) >= maxFailed || ctx.Err() != nil {
			break
		}
		show.seed(seed, summary, n)
		r := run(t, newPlan(seed, chosenRecipes()))
		summary.add(r)
		if *printHistory {
			fmt.Fprint(stdout, r.plan, formatEvents(r.history.all()))
		}
		if len(r.violations) > 0 {
			show.clear()
			t.Errorf("%s", describeFailure(t, r))
		}
	}
	show.clear()
	if *asJSON {
		if err := summary.printJSON(stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	summary.print(stdout)
}

const (
	// ciTime is how long seeds are run without -runs; half of it with -short.
	ciTime = 30 * time.Second
	// maxFailed is the number of failed seeds after which TestSeeds stops.
	maxFailed = 3
)

// describeFailure describes a failed seed by the smallest plan that fails in the same way.
func describeFailure(t *testing.T, r result) string {
	first := r.violations[0]
	small := shrink(r.plan, first.rule, func(p plan) (result, bool) {
		r := run(t, p)
		return r, r.breaksRule(first.rule)
	})
	whole := ""
	if small.breaksRule(first.rule) {
		first = small.firstViolation(first.rule)
	} else { // the failure depends on more than the seed
		small, whole = r, "The plan did not break the rule when it was run again.\n"
	}
	return fmt.Sprintf("seed %d: %v\n%s\nThe smallest plan found that breaks it:\n%v\n%s\nmake sim SEED=%d RUNS=1 "+
		"runs the whole seed again.",
		r.plan.seed, r.violations[0], whole, small.plan, formatEvents(small.history.before(first, 120)), r.plan.seed)
}

// progress updates the progress line on a terminal.
type progress struct {
	to   *os.File
	show bool
	last time.Time
}

func newProgress(to *os.File) *progress { return &progress{to: to, show: terminal.Is(to)} }

func (p *progress) seed(seed uint64, summary *summary, of int) {
	if p.show && time.Since(p.last) > 100*time.Millisecond {
		p.last = time.Now()
		fmt.Fprintf(p.to, "\r\x1b[Kseed %d: %s", seed, summary.progressLine(of))
	}
}

func (p *progress) clear() {
	if p.show {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

// TestFormerlyFailingSeeds runs seeds that have found defects, of which no smaller test shows the
// whole.
func TestFormerlyFailingSeeds(t *testing.T) {
	firstRecipes := []string{"barrier", "claim", "control", "election", "jobs", "lines", "multi", "mutex", "queue",
		"rwlock", "scheduler", "semaphore"}
	for seed, recipes := range map[uint64][]string{
		22:     firstRecipes,                     // a job that is always due kept the only slot from others
		123:    {"control", "jobs", "scheduler"}, // a clock that was set back stretched a hold
		700239: firstRecipes,                     // an item that was returned beside a draw was not counted
		800173: {"queue", "lines"},               // an item that was put as its ticket was given up counted an attempt
	} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, v := range run(t, newPlan(seed, recipes)).violations {
				t.Error(v)
			}
		})
	}
}
