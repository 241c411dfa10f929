package sim

import (
	"maps"
	"slices"
)

// workload is one recipe at one path: what actors do with it, and the rules.
type workload interface {
	path() string
	// play is one actor's part. It returns soon after the program is over, or the actor's process dead.
	runActor(a *actor)
	// settled checks the rules that can be checked once everybody has left and all is well.
	checkAtEnd()
	// stays tells ephemeral nodes, and watched paths, that may be there then.
	mayRemain(node string) bool
	// mayBeDeleted tells nodes that an operator may delete.
	mayBeDeleted(node string) bool
	// ledgers are who holds what.
	holdCheckers() []*holdChecker
}

// newWorkload make the scenes of each recipe.
var newWorkload = map[string]func(*simulation, workloadSpec) workload{}

// recipes are all that can be played.
func recipes() []string { return slices.Sorted(maps.Keys(newWorkload)) }

func makeWorkload(sim *simulation, spec workloadSpec) workload {
	return newWorkload[spec.recipe](sim, spec)
}

// workloadBase is what most scenes have in common.
type workloadBase struct {
	sim  *simulation
	spec workloadSpec
}

func (b *workloadBase) path() string                 { return b.spec.path }
func (b *workloadBase) checkAtEnd()                  {}
func (b *workloadBase) mayRemain(string) bool        { return false }
func (b *workloadBase) mayBeDeleted(string) bool     { return false }
func (b *workloadBase) holdCheckers() []*holdChecker { return nil }

// checkBeforeThaw looks at what a process holds that is about to go on.
func (sim *simulation) checkBeforeThaw(p *process) {
	for _, s := range sim.workloads {
		for _, l := range s.holdCheckers() {
			l.checkBeforeThaw(p)
		}
	}
}
