package sim

import (
	"maps"
	"slices"
)

// workload is one recipe at one path: what its actors do at random, and its rules.
type workload interface {
	path() string
	// runActor runs one actor. It returns soon after the end of the program or of the actor's
	// process.
	runActor(a *actor)
	// checkAtEnd checks the rules for the state after all actors have finished and all faults are
	// healed.
	checkAtEnd()
	// mayRemain reports whether an ephemeral node or a watched path may exist at the end.
	mayRemain(node string) bool
	// mayBeDeleted reports whether an operator may delete a node.
	mayBeDeleted(node string) bool
	// holdCheckers check the holds of the workload's paths.
	holdCheckers() []*holdChecker
}

// newWorkload makes the workload of each recipe.
var newWorkload = map[string]func(*simulation, workloadSpec) workload{}

// recipes returns all recipes.
func recipes() []string { return slices.Sorted(maps.Keys(newWorkload)) }

func makeWorkload(sim *simulation, spec workloadSpec) workload {
	return newWorkload[spec.recipe](sim, spec)
}

// workloadBase has the defaults of a workload.
type workloadBase struct {
	sim  *simulation
	spec workloadSpec
}

func (b *workloadBase) path() string                 { return b.spec.path }
func (b *workloadBase) checkAtEnd()                  {}
func (b *workloadBase) mayRemain(string) bool        { return false }
func (b *workloadBase) mayBeDeleted(string) bool     { return false }
func (b *workloadBase) holdCheckers() []*holdChecker { return nil }

// checkBeforeThaw checks the holds of a process that is about to thaw.
func (sim *simulation) checkBeforeThaw(p *process) {
	for _, s := range sim.workloads {
		for _, l := range s.holdCheckers() {
			l.checkBeforeThaw(p)
		}
	}
}
