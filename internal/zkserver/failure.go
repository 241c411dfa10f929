package zkserver

import (
	"errors"
	"fmt"
)

// ErrSessionTooLarge is wrapped by Failure when a session's close was larger than the servers of an ensemble accept.
var ErrSessionTooLarge = errors.New("zkserver: session has too many ephemeral nodes to be closed")

// What the transaction that closes a session has besides its paths: header, number of paths and digest; and before each
// path its length.
const closeOverhead, pathOverhead = 32 + 4 + 12, 4

// closeSize is the size of the transaction that closes the session, in bytes. It names every ephemeral node.
func (sess *session) closeSize() int {
	size := closeOverhead
	for _, n := range sess.ephemerals.nodes {
		size += pathOverhead + len(n.path)
	}
	return size
}

// checkClose looks whether the servers could close the session. They write the transaction, and cannot read it
// again if it is larger than jute.maxbuffer and zookeeper.jute.maxbuffer.extrasize together, which has the same
// default (ZOOKEEPER-4306): the followers drop their leader over it, and every later leader stumbles over its own
// log. So this server fails as such an ensemble does, for good: it cuts all connections, takes no new session and
// lets nothing expire.
func (s *Server) checkClose(sess *session) error {
	size, limit := sess.closeSize(), 2*s.config.JuteMaxBuffer
	if size <= limit {
		return nil
	}
	s.failure = fmt.Errorf("%w: session %s, %d nodes, a transaction of %d bytes where %d is the limit; a real ensemble "+
		"would never serve again (ZOOKEEPER-4306)", ErrSessionTooLarge, sessionName(sess.id), len(sess.ephemerals.nodes), size, limit)
	s.config.Logger.Error("the server fails", "error", s.failure)
	for c := range s.conns {
		s.cut(c)
	}
	s.expiry.timer.Stop()
	s.reaper.Stop()
	return s.failure
}

// Failure is why the server serves nobody any more; nil while it serves.
func (s *Server) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
