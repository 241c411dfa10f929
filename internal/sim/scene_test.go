package sim

import (
	"maps"
	"slices"
)

// scene is one recipe at one path: what actors do with it, and the rules.
type scene interface {
	path() string
	// play is one actor's part. It returns soon after the program is over, or the actor's process dead.
	play(a *actor)
	// settled checks the rules that can be checked once everybody has left and all is well.
	settled()
	// stays tells ephemeral nodes, and watched paths, that may be there then.
	stays(node string) bool
	// mayDelete tells nodes that an operator may delete.
	mayDelete(node string) bool
	// ledgers are who holds what.
	ledgers() []*ledger
}

// makers make the scenes of each recipe.
var makers = map[string]func(*world, sceneSpec) scene{}

// recipes are all that can be played.
func recipes() []string { return slices.Sorted(maps.Keys(makers)) }

func makeScene(w *world, spec sceneSpec) scene { return makers[spec.recipe](w, spec) }

// base is what most scenes have in common.
type base struct {
	w    *world
	spec sceneSpec
}

func (b *base) path() string          { return b.spec.path }
func (b *base) settled()              {}
func (b *base) stays(string) bool     { return false }
func (b *base) mayDelete(string) bool { return false }
func (b *base) ledgers() []*ledger    { return nil }

// checkThawing looks at what a process holds that is about to go on.
func (w *world) checkThawing(p *process) {
	for _, s := range w.scenes {
		for _, l := range s.ledgers() {
			l.thawing(p)
		}
	}
}
