package scheduler

import (
	"math"
	"sync"
)

// runSlots bound how many runs go on in one member at once.
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

// tryTake takes one if there is one.
func (s *runSlots) tryTake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.used >= s.most {
		return false
	}
	s.used++
	return true
}

// takeAnyway takes one over the bound: the run has been claimed already.
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
