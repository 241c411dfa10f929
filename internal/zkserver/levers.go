package zkserver

import (
	"fmt"
	"time"
)

// Expire ends a session at once, as its timer would: its ephemeral nodes go and
// its connection is cut. It returns an error when there is no such session, and
// one that wraps ErrSessionTooLarge when the server fails because of it.
func (s *Server) Expire(session int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.db.sessions.byID[session]
	if sess == nil {
		return fmt.Errorf("zkserver: no session %s to expire", sessionName(session))
	}
	if s.db.failure == nil {
		s.expireSession(sess)
	}
	return s.db.failure
}

// Failure returns why the server has stopped serving; nil while it serves.
func (s *Server) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.failure
}

// Lag lets the server of a session's connection fall behind, as a follower that does not hear the leader's commits: reads answer from the state
// that it has now, and its watches send no event. A sync or a write brings it up to date, and it falls behind again from there. catchUp ends that, as
// the end of the connection does. Lag returns an error when the session has no connection.
func (s *Server) Lag(session int64) (catchUp func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections.bySession[session]
	if c == nil {
		return nil, fmt.Errorf("zkserver: session %s has no connection that could lag", sessionName(session))
	}
	if c.view == nil {
		c.view = newLaggingView(s.db.tree, s.db.zxid)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.catchUp()
	}, nil
}

// Follower returns a lever of the follower that serves a session's connection now: it holds the messages to the leader, or those from it, or both, until it
// is called again. The follower answers pings all the same, until a request of the session waits; other requests, reads too, wait for the leader. The
// lever outlives the session. Follower returns an error when the session has no connection, or the server no followers.
func (s *Server) Follower(session int64) (hold func(toLeader, fromLeader bool), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections.bySession[session]
	if c == nil || c.follower == nil {
		return nil, fmt.Errorf("zkserver: session %s has no connection to a follower", sessionName(session))
	}
	return func(toLeader, fromLeader bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.follower.holdsUp, c.follower.holdsDown = toLeader, fromLeader
		if !s.frozen && !s.closed {
			c.follower.deliver()
		}
	}, nil
}

// Freeze stops the server as SIGSTOP stops a process: connections stay open and
// new ones are accepted, but the server neither reads nor answers nor sends, and no timer
// runs. Time goes on.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// Thaw lets a frozen server continue, as SIGCONT does. What was due meanwhile happens first: sessions expire before
// the server reads a request that waited.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen && !s.closed {
		s.unfreeze()
		s.expireSessions()
		s.pingAll()
	}
}

func (s *Server) unfreeze() {
	s.frozen = false
	if s.containerCheckPending {
		s.checkContainers()
	}
	for _, c := range s.connections.byAge() {
		c.outgoing.releaseDue()
		if c.follower != nil {
			c.follower.deliver()
		}
	}
	s.thawed.Broadcast()
}

// Restart does what clients see of a server's restart, or of an ensemble's new leader: nodes, sessions and the zxid stay, all
// connections are cut, their watches are gone, and every session has its full timeout again. A frozen server
// thaws.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, c := range s.connections.byAge() {
		s.connections.cutConnection(c)
	}
	s.db.sessions.touchAll()
	s.unfreeze()
	s.expireSessions() // none has expired; this sets the timer
	s.containerTimer.Reset(s.config.ContainerInterval)
}

// Skew sets how far the server's clock is ahead of the true time; a negative one is behind. The clock stamps nodes and ends TTL nodes.
// Sessions do not depend on it.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db.clockSkew = d
}

// Reap removes the containers and TTL nodes that have expired, as the next check would. On a frozen server Thaw does it.
func (s *Server) Reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.frozen:
		s.containerCheckPending = true
	default:
		s.checkContainers()
	}
}

// Number sets the sequence number of the next child that is created below a node. It returns an error when
// there is no such node.
func (s *Server) Number(path string, next int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.db.tree.findNode(path)
	if n == nil {
		return fmt.Errorf("zkserver: no node %s to number the children of", path)
	}
	n.childrenCreated = next
	return nil
}

// DropReply lets the n-th request that matches, counted from one, be done, and
// then cuts its connection instead of answering. Earlier answers still arrive.
func (s *Server) DropReply(n int, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, skip: max(n, 1) - 1})
}

// DelayReplies delays the answer to every request that matches, until it is
// cancelled. What follows on the connection waits behind it.
func (s *Server) DelayReplies(d time.Duration, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, delay: max(d, 1)})
}

// Throttle answers the next requests that match, so many times, with ThrottledOp and does not do them, as an overloaded server does. Pings and
// the close of a session are not throttled. A throttled request is not read: the match sees its operation and its session, and no path.
func (s *Server) Throttle(times int, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, throttleLeft: max(times, 1)})
}

// Observe calls f with every request that has been done, failed ones and pings
// included, in the order in which the server did them and before the answer
// leaves. f runs inside the server: it must be quick and must not call it.
// The returned function ends the observation.
func (s *Server) Observe(f func(Request)) (stop func()) { return s.faults.addObserver(f) }
