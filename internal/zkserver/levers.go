package zkserver

import (
	"fmt"
	"time"
)

// Expire ends a session at once, as its timer would: its ephemeral nodes go and
// its connection is cut. It returns an error when there is no such session, and
// one that wraps ErrSessionTooLarge when the server fails over it.
func (s *Server) Expire(session int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[session]
	if sess == nil {
		return fmt.Errorf("zkserver: no session %s to expire", sessionName(session))
	}
	if s.failure == nil {
		s.expire(sess)
	}
	return s.failure
}

// Freeze stops the server as SIGSTOP stops a process: connections stay open and
// new ones are accepted, but nothing is read, answered or sent, and no timer
// runs. Time goes on outside.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// Thaw lets a frozen server go on. What fell due meanwhile happens first:
// sessions whose time is over expire before any request that waited is read, as
// after SIGCONT.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen && !s.closed {
		s.thaw()
		s.expireNow()
	}
}

func (s *Server) thaw() {
	s.frozen = false
	if s.reapMissed {
		s.reapNow()
	}
	for _, c := range s.connsByAge() {
		c.release()
	}
	s.thawed.Broadcast()
}

// Restart is what clients see of a restart, or of an ensemble's new leader: the
// tree, the sessions and the zxid stay, all connections are cut and their
// watches gone, and every session has its full timeout again. A frozen server
// is not frozen after it.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, c := range s.connsByAge() {
		s.cut(c)
	}
	now := time.Now()
	for _, sess := range s.sessions {
		sess.expires = s.expiryAt(now, sess.timeout)
	}
	s.thaw()
	s.expireNow() // sets the timer; nobody is due
	s.reaper.Reset(s.config.ReapInterval)
}

// Skew sets how far the server's clock is ahead of the true time; a negative one is behind. The clock stamps nodes and ends TTL nodes.
// Sessions do not depend on it.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = d
}

// clock is the time of day that the server believes in.
func (s *Server) clock() time.Time { return time.Now().Add(s.skew) }
