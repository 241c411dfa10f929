package zkserver

import (
	"fmt"
	"time"
)

// Expire ends a session at once, as its timer does: it deletes the ephemeral nodes and
// cuts the connection. It returns an error if there is no such session. The error
// wraps ErrSessionTooLarge if the server fails because of it.
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

// Failure returns why the server has failed, or nil while it serves.
func (s *Server) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.failure
}

// Lag makes the server of a session's connection lag behind, like a follower that gets no commits
// of the leader: reads return the present state from now on, and watches send no events. A sync or
// a write brings the server up to date; then it lags behind again. catchUp ends the lag, and so
// does the end of the connection. Lag returns an error if the session has no connection.
func (s *Server) Lag(session int64) (catchUp func(), err error) { return s.lag(session, false) }

// LagAsLeader is Lag for a session of the leader, while followers are ahead of it with what the
// quorum has agreed on. A sync does not bring the leader up to date, since the leader answers it
// from its own state (ZOOKEEPER-1675). A transaction does.
func (s *Server) LagAsLeader(session int64) (catchUp func(), err error) { return s.lag(session, true) }

func (s *Server) lag(session int64, leader bool) (catchUp func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections.bySession[session]
	if c == nil {
		return nil, fmt.Errorf("zkserver: session %s has no connection", sessionName(session))
	}
	if c.view == nil {
		c.view = newLaggingView(s.db.tree, s.db.zxid, leader)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.catchUp()
	}, nil
}

// Follower returns a function for the follower of a session's connection. Until its next call, hold
// holds back the messages to the leader, or those from it, or both. Meanwhile the follower still
// answers pings, as long as no request of the session waits. Other requests, reads too, wait for
// the leader. hold can also be called after the end of the session. Follower returns an error if
// the session has no connection, or if the server has no followers.
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
// new ones are accepted, but the server does not process requests, sends no answers, and no timer
// runs. Time goes on.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

// Thaw continues a frozen server, as SIGCONT does. Timers that were due meanwhile fire first:
// sessions expire before the server processes a request that has waited.
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
	for _, c := range s.connections.openByAge() {
		c.outgoing.releaseDue()
		if c.follower != nil && !c.detached {
			c.follower.deliver()
		}
	}
	s.thawed.Broadcast()
}

// Restart has the effects that a server's restart, or a new leader of an ensemble, has on clients:
// nodes, sessions and the zxid stay. All connections are cut, with their watches, and each session
// gets its full timeout again. It also thaws a frozen server.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.connections.cutAll()
	s.db.sessions.touchAll()
	s.unfreeze()
	s.expireSessions() // no session has expired; this sets the timer
	s.containerTimer.Reset(s.config.ContainerInterval)
}

// Skew sets how far the server's clock is ahead of the true time, or behind if it is negative. This
// clock gives the times of nodes and the ends of TTL nodes. Sessions do not depend on it.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db.clockSkew = d
}

// Reap removes the containers and TTL nodes that have expired, as the next check does. If the
// server is frozen, Thaw removes them.
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

// Number sets the sequence number of the next child that is created below a node. It returns an
// error if there is no such node.
func (s *Server) Number(path string, next int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.db.tree.findNode(path)
	if n == nil {
		return fmt.Errorf("zkserver: no node %s", path)
	}
	n.childrenCreated = next
	return nil
}

// DropReply processes the n-th request that matches, counted from one, and
// then closes its connection instead of answering it. Earlier answers still arrive.
func (s *Server) DropReply(n int, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, skip: max(n, 1) - 1})
}

// DelayReplies delays the answer to each request that matches, until it is
// cancelled. Later frames on the same connection wait until that answer is sent.
func (s *Server) DelayReplies(d time.Duration, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, delay: max(d, 1)})
}

// Throttle answers the next requests that match, as many as times says, with ThrottledOp and does
// not process them, as an overloaded server does. It does not throttle pings and the close of a
// session. The body of a throttled request is not decoded, so the match sees its operation and its
// session, and no path.
func (s *Server) Throttle(times int, m Match) *Fault {
	return s.faults.addFault(&Fault{match: m, throttleLeft: max(times, 1)})
}

// Observe calls f with each processed request, also with failed ones and pings,
// in the order in which the server has processed them and before it sends the answer.
// The server calls f while it holds its mutex: f must return soon and must not call the server.
// The returned function ends the observation.
func (s *Server) Observe(f func(Request)) (stop func()) { return s.faults.addObserver(f) }
