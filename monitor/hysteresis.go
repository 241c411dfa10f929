package monitor

import (
	"fmt"
	"slices"
	"time"
)

// findingStreak counts the latest scans in a row that have seen a problem, or have not seen it.
type findingStreak struct {
	seen, notSeen int
	since         time.Time // of the first scan in the row
	undecided     int       // the latest scans in a row that could not decide
}

// maxUndecided is after how many scans that could not decide a problem without a finding is
// forgotten.
const maxUndecided = 10

// hysteresis decides after each scan which findings begin and end. Streaks are in memory only: a
// new leader counts from 0.
type hysteresis struct {
	beginAfter int // scans in a row
	endAfter   int // scans in a row
	streaks    map[findingKey]*findingStreak
	leftOut    int // findings that have not begun at the latest scan because the record is full
}

func newHysteresis(s settings) *hysteresis {
	return &hysteresis{beginAfter: s.beginAfter, endAfter: s.endAfter, streaks: map[findingKey]*findingStreak{}}
}

// applyScan counts a scan, and returns the findings that are open after it, and whether they differ
// from open. newID returns another ID at each call.
func (h *hysteresis) applyScan(l *scanResult, open []openFinding,
	newID func() string) (next []openFinding, changed bool) {
	next = slices.Clone(open)
	at, bytes := map[findingKey]int{}, 0
	for i, f := range next {
		at[f.key()] = i
		bytes += f.encodedSize()
		if h.streaks[f.key()] == nil {
			h.streaks[f.key()] = &findingStreak{}
		}
	}
	h.leftOut = 0
	for _, f := range l.sortedFindings() {
		s := h.streaks[f.key()]
		if s == nil {
			s = &findingStreak{}
			h.streaks[f.key()] = s
		}
		if s.seen == 0 {
			s.since, s.notSeen = l.at, 0
		}
		s.seen++
		s.undecided = 0
		if _, isOpen := at[f.key()]; isOpen || s.seen < h.beginAfter {
			continue
		}
		begun := openFinding{Finding: f, Began: s.since}
		if bytes += begun.encodedSize() + len(begun.ID); len(next) == maxOpen || bytes > maxOpenBytes {
			bytes -= begun.encodedSize()
			h.leftOut++
			continue
		}
		begun.ID, changed = newID(), true
		next = append(next, begun)
	}
	for k, s := range h.streaks {
		if _, seen := l.findings[k]; seen {
			continue
		}
		i, isOpen := at[k]
		if l.isUndecided(k) {
			if s.undecided++; !isOpen && s.undecided > maxUndecided {
				delete(h.streaks, k)
			}
			continue
		}
		s.undecided = 0
		if !isOpen {
			delete(h.streaks, k)
			continue
		}
		if s.notSeen == 0 {
			s.since, s.seen = l.at, 0
		}
		if s.notSeen++; s.notSeen >= h.endAfter && next[i].Ended.IsZero() {
			next[i].Ended, changed = s.since, true
		}
	}
	return next, changed
}

// newFindingIDs returns a function that returns another ID at each call. token is the term's, so
// that the IDs of two terms differ.
func newFindingIDs(token int64) func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%x-%d", token, n)
	}
}
