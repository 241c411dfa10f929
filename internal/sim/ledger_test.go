package sim

import (
	"context"
	"sync"
)

// ledger is who holds one thing, and the rules of holding it: nobody beside an exclusive holder, no more
// permits than there are, and tokens that rise.
//
// A holder is believed by its context, not by asking for its error: that would look at the clock for it. Frozen
// processes are looked at when they go on.
type ledger struct {
	w     *world
	scene string
	path  string

	unfenced bool // tokens tell grants apart and no more

	mu      sync.Mutex
	holds   []*hold
	highest mark // of all grants
	fence   mark // of exclusive grants
	tokens  map[mark]string
}

// hold is one grant.
type hold struct {
	who     *actor
	shared  bool
	permits int // of a semaphore: how many, of at most limit
	limit   func() int
	mark    mark
	session int64
	node    string
	ctx     context.Context
	err     func() error // reads the clock
}

// mark is a fencing token, and the turn within a slice.
type mark struct{ token, turn int64 }

func (m mark) above(o mark) bool {
	return m.token > o.token || m.token == o.token && m.turn > o.turn
}

func newLedger(w *world, scene, path string) *ledger {
	return &ledger{w: w, scene: scene, path: path, tokens: map[mark]string{}}
}

// granted notes a grant and checks it.
func (l *ledger) granted(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.h.note(l.scene, "%s holds %s: %s, token %d.%d", h.who.name, l.path, h.mode(), h.mark.token, h.mark.turn)
	l.checkOrder(h)
	l.holds = append(l.prune(), h)
	if h.standing() {
		l.checkAlone(h, (*hold).standing)
	}
}

// goesOn notes what a holder goes on with, which is no grant of its own.
func (l *ledger) goesOn(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = append(l.prune(), h)
	if h.standing() {
		l.checkAlone(h, (*hold).standing)
	}
}

// thawing looks at what a frozen process holds, which must know by itself that it is over.
func (l *ledger) thawing(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holds {
		if h.who.process == p && h.err() == nil {
			l.checkAlone(h, func(o *hold) bool { return o.who.process != p && o.standing() })
		}
	}
}

// checkAlone checks that a hold goes with all others that count.
func (l *ledger) checkAlone(h *hold, counts func(*hold) bool) {
	taken := 0
	for _, o := range l.holds {
		if l.w.isDoomed(o.session, o.node) || o != h && !counts(o) {
			continue
		}
		taken += o.permits
		if o != h && !(o.shared && h.shared) && !l.w.isDoomed(h.session, h.node) {
			l.w.violate(l.scene, "exclusion", "%s (%s, token %d) holds %s beside %s (%s, token %d)",
				h.who.name, h.mode(), h.mark.token, l.path, o.who.name, o.mode(), o.mark.token)
		}
	}
	if h.permits > 0 && taken > h.limit() && !l.w.isDoomed(h.session, h.node) {
		l.w.violate(l.scene, "permits", "%s makes it %d permits of %d", h.who.name, taken, h.limit())
	}
}

// checkOrder checks a grant's token against those before.
func (l *ledger) checkOrder(h *hold) {
	if other, taken := l.tokens[h.mark]; taken {
		l.w.violate(l.scene, "token", "%s has the token %d of %s", h.who.name, h.mark.token, other)
	}
	l.tokens[h.mark] = h.who.name
	if l.unfenced || l.w.isDoomed(h.session, h.node) {
		return
	}
	before := l.highest
	if h.shared {
		before = l.fence
	}
	if !h.mark.above(before) {
		l.w.violate(l.scene, "order", "%s is granted %s (%s) with token %d.%d, after token %d.%d was", h.who.name, l.path, h.mode(),
			h.mark.token, h.mark.turn, before.token, before.turn)
	}
	if h.mark.above(l.highest) {
		l.highest = h.mark
	}
	if !h.shared && h.mark.above(l.fence) {
		l.fence = h.mark
	}
}

// prune forgets holds that have ended.
func (l *ledger) prune() (rest []*hold) {
	for _, h := range l.holds {
		if !h.over() || h.who.frozen() {
			rest = append(rest, h)
		}
	}
	return rest
}

// standing tells whether the holder's code that looks at its context goes on.
func (h *hold) standing() bool {
	return !h.who.frozen() && !h.over()
}

// over tells whether the holder's context has said so.
func (h *hold) over() bool {
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
