package monitor

import (
	"fmt"
	"slices"
	"time"
)

// streak is how often in a row a finding was seen, or was not seen.
type streak struct {
	seen, clean int
	since       time.Time // the first look of the present row
}

// hysteresis decides from looks which findings begin and end. Streaks are in memory: the next leader counts anew.
type hysteresis struct {
	begin, end int
	streaks    map[key]*streak
	leftOut    int // findings that would have begun, but the record is full
}

func newHysteresis(s settings) *hysteresis {
	return &hysteresis{begin: s.begin, end: s.end, streaks: map[key]*streak{}}
}

// apply takes in a look, and returns the findings that are open after it. newID makes an ID from a number that is different in each term.
func (h *hysteresis) apply(l *look, open []openFinding, newID func() string) (next []openFinding, changed bool) {
	next = slices.Clone(open)
	at, bytes := map[key]int{}, 0
	for i, f := range next {
		at[f.key()] = i
		bytes += f.size()
		if h.streaks[f.key()] == nil {
			h.streaks[f.key()] = &streak{}
		}
	}
	h.leftOut = 0
	for _, f := range l.sorted() {
		s := h.streaks[f.key()]
		if s == nil {
			s = &streak{}
			h.streaks[f.key()] = s
		}
		if s.seen == 0 {
			s.since, s.clean = l.at, 0
		}
		s.seen++
		if _, isOpen := at[f.key()]; isOpen || s.seen < h.begin {
			continue
		}
		begun := openFinding{Finding: f, Began: s.since}
		if bytes += begun.size() + len(begun.ID); len(next) == mostOpen || bytes > mostBytes {
			bytes -= begun.size()
			h.leftOut++
			continue
		}
		begun.ID, changed = newID(), true
		next = append(next, begun)
	}
	for k, s := range h.streaks {
		if _, seen := l.findings[k]; seen || l.cannotTell(k) {
			continue
		}
		i, isOpen := at[k]
		if !isOpen {
			delete(h.streaks, k)
			continue
		}
		if s.clean == 0 {
			s.since, s.seen = l.at, 0
		}
		if s.clean++; s.clean >= h.end && next[i].Ended.IsZero() {
			next[i].Ended, changed = s.since, true
		}
	}
	return next, changed
}

// ids returns a function that makes an ID at each call.
func ids(token int64) func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%x-%d", token, n)
	}
}
