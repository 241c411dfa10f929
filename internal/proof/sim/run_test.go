package sim

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
)

// result is the outcome of a plan.
type result struct {
	plan       plan
	violations []violation
	history    *history
	faults     map[faultKind]int
	operations map[string]int
}

// run runs a plan in a bubble of its own.
func run(t *testing.T, p plan) (res result) {
	uuid.SetRand(&randomReader{r: newRand(p.seed, "uuids")})
	defer uuid.SetRand(nil)
	synctest.Test(t, func(*testing.T) {
		sim := newSimulation(p)
		sim.run()
		res = result{p, sim.violations, sim.history, sim.faultCounts, sim.operationCounts}
	})
	return res
}

// breaksRule reports whether a rule, or any rule, was broken.
func (r result) breaksRule(rule string) bool {
	return slices.ContainsFunc(r.violations, func(v violation) bool { return v.breaksRule(rule) })
}

// firstViolation is the first violation of a rule.
func (r result) firstViolation(rule string) violation {
	return r.violations[slices.IndexFunc(r.violations, func(v violation) bool { return v.breaksRule(rule) })]
}

func (v violation) breaksRule(rule string) bool { return rule == anyRule || rule == v.rule }
