package zkserver

import "fmt"

// Reap removes the containers and TTL nodes that are due, as the next search would.
func (s *Server) Reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.frozen:
		s.reapMissed = true
	default:
		s.reapNow()
	}
}

// Number makes next the number of the next child that is created below a node. It returns an error when
// there is no such node.
func (s *Server) Number(path string, next int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.get(path)
	if n == nil {
		return fmt.Errorf("zkserver: no node %s to number the children of", path)
	}
	n.creates = next
	return nil
}
