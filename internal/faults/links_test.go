package faults

import (
	"testing"

	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// linkFaults break the link between a holder and its server.
var linkFaults = []struct {
	name   string
	strike func(*ensemble.Proxy)
}{
	{"cut", (*ensemble.Proxy).Cut},
	{"nothing passes", func(p *ensemble.Proxy) { p.Hold(ensemble.Both) }},
	{"nothing goes up", func(p *ensemble.Proxy) { p.Hold(ensemble.Up) }},
	{"nothing comes down", func(p *ensemble.Proxy) { p.Hold(ensemble.Down) }},
	{"half-open server", func(p *ensemble.Proxy) { p.Hold(ensemble.Both); p.Reset() }},
}

// testLinks breaks all of them at once, on links to a follower and to the leader.
func testLinks(t *testing.T, a *arena) {
	r := a.roles(t)
	var corners []corner
	var strikes, heals []func()
	for _, f := range linkFaults {
		for _, server := range []int{r.follower, r.leader} {
			p := a.proxy(t, server)
			corners = append(corners, corner{name: f.name, holder: config(p.Addr()), waiter: a.at(r.other), doomed: true})
			strikes = append(strikes, func() { f.strike(p) })
			heals = append(heals, p.Heal)
		}
	}
	ds := standing(t, duels(t, 3, corners...))
	each(strikes)
	fightOut(t, ds, func() { each(heals) })
}

func each(fs []func()) {
	for _, f := range fs {
		f()
	}
}
