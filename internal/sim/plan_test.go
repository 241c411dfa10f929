package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is all that a seed decides beforehand. What is left to chance within it is drawn from streams that
// depend on the seed and the name of who draws, so that a plan of which something was taken away still runs
// the rest with the same draws.
type plan struct {
	seed      uint64
	length    time.Duration
	timeout   time.Duration // of sessions
	exact     bool          // sessions expire to the moment
	reaping   time.Duration // between the searches for empty containers
	processes int
	scenes    []sceneSpec
	faults    []fault
}

// sceneSpec is a recipe at a path.
type sceneSpec struct {
	recipe string
	path   string
	actors int // of each process
}

// newPlan draws the plan of a seed. The recipes are those that may be played.
func newPlan(seed uint64, recipes []string) plan {
	r := stream(seed, "plan")
	p := plan{
		seed: seed, length: between(r, 20*time.Second, 2*time.Minute), timeout: pick(r, 6*time.Second, 10*time.Second, 16*time.Second),
		exact: oneIn(r, 2), reaping: pick(r, time.Second, time.Minute), processes: 1 + r.IntN(4),
	}
	if oneIn(r, 20) {
		p.length = between(r, 5*time.Minute, 20*time.Minute)
	}
	for i := range 1 + r.IntN(3) {
		recipe := pick(r, recipes...)
		p.scenes = append(p.scenes, sceneSpec{recipe, fmt.Sprintf("/%s%d", recipe, i), 1 + r.IntN(3)})
	}
	p.faults = append(drawFaults(stream(seed, "faults"), p), drawClockFaults(stream(seed, "clock"), p)...)
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return p
}

// drawFaults spreads faults over the plan's length: in some seeds many, in some few, in some none.
func drawFaults(r *rand.Rand, p plan) (all []fault) {
	gap := pick(r, 500*time.Millisecond, 2*time.Second, 8*time.Second, 30*time.Second, time.Hour)
	for at := between(r, 0, 2*gap); at < p.length; at += between(r, 0, 2*gap) {
		all = append(all, drawFault(r, p, at))
	}
	return all
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d processes for %v, sessions of %v", p.seed, p.processes, p.length.Round(time.Millisecond), p.timeout)
	if p.exact {
		b.WriteString(" that expire to the moment")
	}
	fmt.Fprintf(&b, ", containers reaped each %v\n", p.reaping)
	for _, s := range p.scenes {
		fmt.Fprintf(&b, "  %s with %d actors in each process\n", s.path, s.actors)
	}
	for _, f := range p.faults {
		fmt.Fprintf(&b, "  %v\n", f)
	}
	return b.String()
}
