package scheduler

import (
	"math"
	"sync"
)

// runSlots bounds how many runs go on in one member at once; see WithMaxConcurrent.
type runSlots struct {
	most int // 0: no bound

	mu   sync.Mutex
	used int
}

// freeSlots counts the free slots.
func (s *runSlots) freeSlots() int {
	if s.most == 0 {
		return math.MaxInt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most - s.used
}

// tryTake takes a slot, or returns false if none is free.
func (s *runSlots) tryTake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.used >= s.most {
		return false
	}
	s.used++
	return true
}

// takeAnyway takes a slot, also beyond the bound, for a run that has been claimed already.
func (s *runSlots) takeAnyway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
}

func (s *runSlots) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}
