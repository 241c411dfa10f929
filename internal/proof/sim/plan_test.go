package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is what a seed decides before the run. Other random choices come from generators that depend
// on the seed and the name of their user, so that the rest of a reduced plan draws the same values.
type plan struct {
	seed           uint64
	duration       time.Duration
	sessionTimeout time.Duration // session timeout
	exactExpiry    bool          // sessions expire exactly at their timeout
	reapInterval   time.Duration // between searches for empty containers
	followers      bool          // sessions are served by followers, not by the leader
	processes      int
	workloads      []workloadSpec
	faults         []fault
}

// workloadSpec is a recipe at a path.
type workloadSpec struct {
	recipe string
	path   string
	actors int // of each process
}

// newPlan draws the plan of a seed from these recipes.
func newPlan(seed uint64, recipes []string) plan {
	r := newRand(seed, "plan")
	p := plan{
		seed: seed, duration: durationBetween(r, 20*time.Second, 2*time.Minute),
		sessionTimeout: pickOne(r, 6*time.Second, 10*time.Second, 16*time.Second),
		exactExpiry:    oneIn(r, 2), reapInterval: pickOne(r, time.Second, time.Minute), processes: 1 + r.IntN(4),
	}
	if oneIn(r, 20) {
		p.duration = durationBetween(r, 5*time.Minute, 20*time.Minute)
	}
	for i := range 1 + r.IntN(3) {
		recipe := pickOne(r, recipes...)
		p.workloads = append(p.workloads, workloadSpec{recipe, fmt.Sprintf("/%s%d", recipe, i), 1 + r.IntN(3)})
	}
	if slices.ContainsFunc(p.workloads, func(s workloadSpec) bool { return s.recipe == "sleepers" }) {
		p.prepareForSleepers()
	}
	p.faults = slices.Concat(drawFaults(newRand(seed, "faults"), p), drawClockFaults(newRand(seed, "clock"), p),
		drawFollowerFaults(newRand(seed, "followers"), p))
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return p
}

// prepareForSleepers gives sessions time to fall asleep several times, and has them served by
// followers.
func (p *plan) prepareForSleepers() {
	p.followers = true
	p.processes = max(p.processes, 2)
	p.duration = max(p.duration, 20*p.sessionTimeout)
}

// drawFaults spreads faults over the plan's duration: many in some seeds, few or none in others.
func drawFaults(r *rand.Rand, p plan) (all []fault) {
	gap := pickOne(r, 500*time.Millisecond, 2*time.Second, 8*time.Second, 30*time.Second, time.Hour)
	if p.followers { // sessions need time to fall asleep
		gap = max(gap, 4*p.sessionTimeout)
	}
	for at := durationBetween(r, 0, 2*gap); at < p.duration; at += durationBetween(r, 0, 2*gap) {
		all = append(all, drawFault(r, p, at))
	}
	return all
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d processes for %v, sessions of %v", p.seed, p.processes,
		p.duration.Round(time.Millisecond), p.sessionTimeout)
	if p.exactExpiry {
		b.WriteString(" that expire to the moment")
	}
	if p.followers {
		b.WriteString(", on followers")
	}
	fmt.Fprintf(&b, ", containers reaped each %v\n", p.reapInterval)
	for _, s := range p.workloads {
		fmt.Fprintf(&b, "  %s with %d actors in each process\n", s.path, s.actors)
	}
	for _, f := range p.faults {
		fmt.Fprintf(&b, "  %v\n", f)
	}
	return b.String()
}
