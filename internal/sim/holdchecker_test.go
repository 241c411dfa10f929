package sim

import (
	"context"
	"sync"
)

// holdChecker is who holds one thing, and the rules of holding it: nobody beside an exclusive holder, no more
// permits than there are, and tokens that rise.
//
// A holder is believed by its context, not by asking for its error: that would look at the clock for it. Frozen
// processes are looked at when they go on.
type holdChecker struct {
	sim          *simulation
	workloadPath string
	path         string

	unfenced bool // tokens tell grants apart and no more

	mu               sync.Mutex
	holds            []*hold
	highestToken     grantToken // of all grants
	highestExclusive grantToken // of exclusive grants
	tokens           map[grantToken]string
}

// hold is one grant.
type hold struct {
	holder  *actor
	shared  bool
	permits int // of a semaphore: how many, of at most limit
	limit   func() int
	token   grantToken
	session int64
	node    string
	ctx     context.Context
	err     func() error // reads the clock
}

// grantToken is a fencing token, and the turn within a slice.
type grantToken struct{ token, turn int64 }

func (m grantToken) above(o grantToken) bool {
	return m.token > o.token || m.token == o.token && m.turn > o.turn
}

func newHoldChecker(sim *simulation, workloadPath, path string) *holdChecker {
	return &holdChecker{sim: sim, workloadPath: workloadPath, path: path, tokens: map[grantToken]string{}}
}

// addGrant notes a grant and checks it.
func (c *holdChecker) addGrant(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sim.history.add(c.workloadPath, "%s holds %s: %s, token %d.%d", h.holder.name, c.path, h.mode(), h.token.token, h.token.turn)
	c.checkToken(h)
	c.holds = append(c.activeHolds(), h)
	if h.isActive() {
		c.checkExclusion(h, (*hold).isActive)
	}
}

// addDowngraded notes what a holder goes on with, which is no grant of its own.
func (c *holdChecker) addDowngraded(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.activeHolds(), h)
	if h.isActive() {
		c.checkExclusion(h, (*hold).isActive)
	}
}

// checkBeforeThaw looks at what a frozen process holds, which must know by itself that it is over.
func (c *holdChecker) checkBeforeThaw(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holds {
		if h.holder.process == p && h.err() == nil {
			c.checkExclusion(h, func(o *hold) bool { return o.holder.process != p && o.isActive() })
		}
	}
}

// checkExclusion checks that a hold goes with all others that count.
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
	if h.permits > 0 && taken > h.limit() && !c.sim.isEndedByOperator(h.session, h.node) {
		c.sim.addViolation(c.workloadPath, "permits", "%s makes it %d permits of %d", h.holder.name, taken, h.limit())
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
		c.sim.addViolation(c.workloadPath, "order", "%s is granted %s (%s) with token %d.%d, after token %d.%d was", h.holder.name, c.path, h.mode(),
			h.token.token, h.token.turn, before.token, before.turn)
	}
	if h.token.above(c.highestToken) {
		c.highestToken = h.token
	}
	if !h.shared && h.token.above(c.highestExclusive) {
		c.highestExclusive = h.token
	}
}

// activeHolds forgets holds that have ended.
func (c *holdChecker) activeHolds() (rest []*hold) {
	for _, h := range c.holds {
		if !h.hasEnded() || h.holder.frozen() {
			rest = append(rest, h)
		}
	}
	return rest
}

// isActive tells whether the holder's code that looks at its context goes on.
func (h *hold) isActive() bool {
	return !h.holder.frozen() && !h.hasEnded()
}

// hasEnded tells whether the holder's context has said so.
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
