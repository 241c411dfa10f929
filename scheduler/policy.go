package scheduler

import (
	"fmt"
	"maps"
	"slices"
)

// Guarantee says what happens to a run when the member that runs it dies.
type Guarantee string

// The guarantees.
const (
	// AtMostOnce: the tick is not run again; it is recorded as missed, with ReasonRunnerLost. The
	// default.
	AtMostOnce Guarantee = "at most once"
	// AtLeastOnce: the run is repeated by another member, which has Job.Attempts of its own. That
	// happens at most MaxReruns times because members die, and each time that the scheduler is
	// stopped before the run has finished or used up its attempts. A paused job's runs of ticks are
	// repeated when it is resumed; those that were asked for with Trigger are repeated at once.
	AtLeastOnce Guarantee = "at least once"
)

// MaxReruns is how often a run of an AtLeastOnce job is repeated because its members die: a run
// that kills its process each time must not kill the whole cluster for ever. Further attempts
// of one member, and orderly stops, do not count.
const MaxReruns = 10

// Misfire says what happens to ticks that could not be run when they were due.
type Misfire string

// The misfire policies. Ticks that are not run are recorded as missed.
const (
	// MisfireLatest runs the latest of them, if it is not later than the job's Deadline. The
	// default.
	MisfireLatest Misfire = "latest"
	// MisfireSkip runs only ticks that are at most OnTime late, or the Deadline if that is shorter.
	MisfireSkip Misfire = "skip"
	// MisfireAll runs each tick that is not later than the Deadline, the oldest first. Under
	// OverlapForbid these ticks, and those that come due meanwhile, wait for each other.
	MisfireAll Misfire = "all"
)

// Overlap says what happens to a tick that is due while a run of its job goes on.
type Overlap string

// The overlap policies.
const (
	// OverlapForbid misses the tick. The default.
	OverlapForbid Overlap = "forbid"
	// OverlapAllow runs it beside the others, up to MaxOverlapping runs at once. Beyond, it misses
	// the tick, or under MisfireAll keeps it waiting.
	OverlapAllow Overlap = "allow"
	// OverlapReplace ends the context of the other run, and runs the tick once the other run has
	// returned, if the tick is within its Deadline then. A run that was asked for with Trigger is
	// replaced only by a tick that comes after its start.
	OverlapReplace Overlap = "replace"
)

// MaxOverlapping is how many runs of a job go on at once at most, or fewer if the identities of
// their members are long: the state of the job names them all, and is one node.
const MaxOverlapping = 1000

// maxOverlappingBytes bounds the runs that go on in a job's state. That is less than half of what a
// node can hold, so that the transactions that end runs, record missed ticks, pause or remove the
// job fit, too.
const maxOverlappingBytes = 400 << 10

// Placement selects the member that runs a job.
type Placement string

// The placements.
const (
	// OnLeader runs the job in the member that leads. The default.
	OnLeader Placement = "leader"
	// Spread gives each job a member, by rendezvous hashing over those that have the job and its
	// labels: when a member comes or goes, only the jobs that it gets or had change their owner.
	Spread Placement = "spread"
)

// checkPolicy refuses a policy that is not in all; the first is the default.
func checkPolicy[P ~string](name string, p *P, all ...P) error {
	if *p == "" {
		*p = all[0]
	}
	if !slices.Contains(all, *p) {
		return fmt.Errorf("%s is %q: there are %q", name, *p, all)
	}
	return nil
}

const (
	maxLabels = 64
	maxLabel  = 256
)

// validLabels refuses labels without a name, and those that are too long or too many.
func validLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("%d labels: want at most %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[name]; {
		case name == "":
			return fmt.Errorf("the label with the value %q has no name", value)
		case len(name) > maxLabel || len(value) > maxLabel:
			return fmt.Errorf("the label %.20q has a name of %d bytes and a value of %d: want at most %d for each",
				name, len(name), len(value), maxLabel)
		}
	}
	return nil
}
