package sim

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
)

// result is how a plan has ended.
type result struct {
	plan       plan
	violations []violation
	history    *history
	struck     map[kind]int
	did        map[string]int
}

// run runs a plan in a bubble of its own.
func run(t *testing.T, p plan) (res result) {
	uuid.SetRand(&bytesOf{r: stream(p.seed, "uuids")})
	defer uuid.SetRand(nil)
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p)
		w.run()
		res = result{p, w.violations, w.h, w.struck, w.did}
	})
	return res
}

// breaks tells whether a rule was broken, or any.
func (r result) breaks(rule string) bool {
	return slices.ContainsFunc(r.violations, func(v violation) bool { return v.is(rule) })
}

// first is the first violation of a rule.
func (r result) first(rule string) violation {
	return r.violations[slices.IndexFunc(r.violations, func(v violation) bool { return v.is(rule) })]
}

func (v violation) is(rule string) bool { return rule == anyRule || rule == v.rule }
