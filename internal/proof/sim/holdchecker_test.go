package sim

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// holdChecker checks the holds of one path: no holder beside an exclusive one, at most as many
// permits as allowed, and rising tokens.
//
// It reads the channel of a hold's context, not its error: Err reads the clock, and could end the
// hold that is under test. Holds of frozen processes are checked when they thaw.
type holdChecker struct {
	sim          *simulation
	workloadPath string
	path         string

	unfenced bool // tokens identify grants, but need not rise

	mu               sync.Mutex
	holds            []*hold
	highestToken     grantToken // of any grant
	highestExclusive grantToken // of exclusive grants
	tokens           map[grantToken]string
}

// hold is one grant.
type hold struct {
	holder  *actor
	shared  bool
	permits int // of a semaphore, whose limit may change
	limit   func(token int64) int
	token   grantToken
	session framework.SessionID
	node    string
	ctx     context.Context
	err     func() error // the lease's Err, which reads the clock
}

// grantToken is a fencing token, and the turn within a local handoff.
type grantToken struct{ token, turn int64 }

func (m grantToken) above(o grantToken) bool {
	return m.token > o.token || m.token == o.token && m.turn > o.turn
}

func newHoldChecker(sim *simulation, workloadPath, path string) *holdChecker {
	return &holdChecker{sim: sim, workloadPath: workloadPath, path: path, tokens: map[grantToken]string{}}
}

// addGrant adds a grant and checks it.
func (c *holdChecker) addGrant(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sim.history.add(c.workloadPath, "%s holds %s: %s, token %d.%d", h.holder.name, c.path, h.mode(),
		h.token.token, h.token.turn)
	c.checkToken(h)
	c.holds = append(c.activeHolds(), h)
	if h.isActive() {
		c.checkExclusion(h, (*hold).isActive)
	}
}

// addDowngraded adds a hold that continues another one, which is no grant of its own.
func (c *holdChecker) addDowngraded(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.activeHolds(), h)
	if h.isActive() {
		c.checkExclusion(h, (*hold).isActive)
	}
}

// checkBeforeThaw checks the holds of a frozen process. Their leases must have ended by the
// process's own clock if another process holds.
func (c *holdChecker) checkBeforeThaw(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holds {
		if h.holder.process == p && h.err() == nil {
			c.checkExclusion(h, func(o *hold) bool { return o.holder.process != p && o.isActive() })
		}
	}
}

// checkExclusion checks that a hold is compatible with all others that count.
func (c *holdChecker) checkExclusion(h *hold, counts func(*hold) bool) {
	taken := 0
	for _, o := range c.holds {
		if c.sim.isEndedByOperator(o.session, o.node) || o != h && !counts(o) {
			continue
		}
		taken += o.permits
		if o != h && !(o.shared && h.shared) && !c.sim.isEndedByOperator(h.session, h.node) {
			c.sim.addViolation(c.workloadPath, "exclusion", "%s (%s, token %d) holds %s beside %s (%s, token %d)",
				h.holder.name, h.mode(), h.token.token, c.path, o.holder.name, o.mode(), o.token.token)
		}
	}
	if h.permits > 0 && taken > h.limit(h.token.token) && !c.sim.isEndedByOperator(h.session, h.node) {
		c.sim.addViolation(c.workloadPath, "permits", "with the grant of %s, %d of %d permits are held", h.holder.name,
			taken, h.limit(h.token.token))
	}
}

// checkToken checks a grant's token against those before.
func (c *holdChecker) checkToken(h *hold) {
	if other, taken := c.tokens[h.token]; taken {
		c.sim.addViolation(c.workloadPath, "token", "%s has the token %d of %s", h.holder.name, h.token.token, other)
	}
	c.tokens[h.token] = h.holder.name
	if c.unfenced || c.sim.isEndedByOperator(h.session, h.node) {
		return
	}
	before := c.highestToken
	if h.shared {
		before = c.highestExclusive
	}
	if !h.token.above(before) {
		c.sim.addViolation(c.workloadPath, "order", "%s is granted %s (%s) with token %d.%d after token %d.%d",
			h.holder.name, c.path, h.mode(),
			h.token.token, h.token.turn, before.token, before.turn)
	}
	if h.token.above(c.highestToken) {
		c.highestToken = h.token
	}
	if !h.shared && h.token.above(c.highestExclusive) {
		c.highestExclusive = h.token
	}
}

// activeHolds returns the holds that have not ended.
func (c *holdChecker) activeHolds() (rest []*hold) {
	for _, h := range c.holds {
		if !h.hasEnded() || h.holder.frozen() {
			rest = append(rest, h)
		}
	}
	return rest
}

// isActive reports whether code that watches the hold's context still runs.
func (h *hold) isActive() bool {
	return !h.holder.frozen() && !h.hasEnded()
}

// hasEnded reports whether the hold's context is done.
func (h *hold) hasEnded() bool {
	select {
	case <-h.ctx.Done():
		return true
	default:
		return false
	}
}

func (h *hold) mode() string {
	switch {
	case h.permits > 0:
		return "permits"
	case h.shared:
		return "shared"
	}
	return "exclusive"
}
