package zkserver

import "time"

// reap removes containers and TTL nodes that are due, and sets its timer again.
func (s *Server) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.frozen {
		s.reapMissed = true
		return
	}
	s.reapNow()
}

// reapNow deletes each node in a transaction of its own. What becomes due
// through that waits for the next time, as on the real server.
func (s *Server) reapNow() {
	if s.failure != nil {
		return
	}
	now := s.clock()
	var due []*node
	for _, n := range s.tree.reapable.nodes {
		if n.overdue(now) {
			due = append(due, n)
		}
	}
	for _, n := range due {
		t := s.begin(nil)
		t.remove(n)
		t.commit()
	}
	s.reapMissed = false
	s.reaper.Reset(s.config.ReapInterval)
}

// overdue spares a container that has never had a child: its maker is about to
// give it one.
func (n *node) overdue(now time.Time) bool {
	switch {
	case len(n.children.nodes) > 0:
		return false
	case n.kind == Container:
		return n.creates > 0
	default:
		return now.UnixMilli()-n.mtime > n.owner
	}
}
