package scheduler

import (
	"math"
	"sync"
)

// slots bound how many runs go on in one member at once.
type slots struct {
	most int // 0: no bound

	mu   sync.Mutex
	used int
}

// free is how many there are.
func (s *slots) free() int {
	if s.most == 0 {
		return math.MaxInt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most - s.used
}

// take takes one if there is one.
func (s *slots) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.used >= s.most {
		return false
	}
	s.used++
	return true
}

// force takes one even if there is none: the run has been claimed already.
func (s *slots) force() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}
