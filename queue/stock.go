package queue

import "sync"

// stock counts by segment what a shift has asked for and not settled. When it has passed a segment and has
// nothing of it any more, it tries to remove it; the servers refuse while others have something of it.
type stock struct {
	mu sync.Mutex
	n  map[shelf]int
}

// shelf is a segment of a line.
type shelf struct {
	line line
	seg  int64
}

func (st *stock) add(at shelf) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.n[at]++
}

// less counts one less, and tells whether it was the last.
func (st *stock) less(at shelf) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.n[at]--; st.n[at] > 0 {
		return false
	}
	delete(st.n, at)
	return true
}

func (st *stock) empty(at shelf) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.n[at] == 0
}

// settled takes in that the shift has one item less of a segment.
func (sh *shift) settled(at shelf) {
	if sh.stock.less(at) && sh.passed(at) {
		sh.reap(at)
	}
}

// left takes in that the shift has passed a segment.
func (sh *shift) left(at shelf) {
	if sh.stock.empty(at) {
		sh.reap(at)
	}
}

// reap removes a segment, if it is closed and empty.
func (sh *shift) reap(at shelf) {
	sh.q.tasks.start(func() { _ = at.line.remove(sh.s.Context(), sh.s, at.seg) })
}

// passed tells whether the shift has left a segment behind.
func (sh *shift) passed(at shelf) bool {
	if d := sh.deskOf(); d != nil {
		return d.passed(at)
	}
	return sh.lines.past(at)
}
