package faults

import (
	"testing"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// linkFaults are faults of the link between a holder and its server.
var linkFaults = []struct {
	name   string
	inject func(*ensemble.Proxy)
}{
	{"cut", (*ensemble.Proxy).Cut},
	{"black hole in both directions", func(p *ensemble.Proxy) { p.Hold(ensemble.Both) }},
	{"requests are lost", func(p *ensemble.Proxy) { p.Hold(ensemble.Up) }},
	{"replies are lost", func(p *ensemble.Proxy) { p.Hold(ensemble.Down) }},
	{"half-open server", func(p *ensemble.Proxy) { p.Hold(ensemble.Both); p.Reset() }},
}

// testLinkFaults injects all link faults at the same time, on links to a follower and to the
// leader.
func testLinkFaults(t *testing.T, env *testEnv) {
	r := env.chooseRoles(t)
	var placements []placement
	var injects, heals []func()
	for _, f := range linkFaults {
		for _, server := range []int{r.follower, r.leader} {
			p := env.newProxy(t, server)
			placements = append(placements,
				placement{name: f.name, holder: config(p.Addr()), waiter: env.clientConfig(r.other), mustBeLost: true})
			injects = append(injects, func() { f.inject(p) })
			heals = append(heals, p.Heal)
		}
	}
	contests := startContests(t, 3, placements...)
	callAll(injects)
	finishContests(t, contests, func() { callAll(heals) })
}

func callAll(fs []func()) {
	for _, f := range fs {
		f()
	}
}
