package zktest

import (
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// Expire ends a session at once, as its timer would: its ephemeral nodes go, and
// its connection is cut. It returns an error when there is no such session.
func (s *Server) Expire(session framework.SessionID) error { return s.core.Expire(int64(session)) }

// Lag lets the server of a session's connection fall behind, as a follower that
// does not hear the leader's commits: reads answer from the state that it has now,
// and its watches send no event. A sync or a write brings it up to date, and it
// falls behind again from there. catchUp ends that, as the end of the connection
// does. Lag returns an error when the session has no connection.
func (s *Server) Lag(session framework.SessionID) (catchUp func(), err error) {
	return s.core.Lag(int64(session))
}

// LagAsLeader is Lag for a session whose server is the leader. Followers may have applied and
// acknowledged transactions that the leader has not applied yet. A sync does not bring it up to
// date, since a leader answers that from its own state (ZOOKEEPER-1675). A transaction does.
func (s *Server) LagAsLeader(session framework.SessionID) (catchUp func(), err error) {
	return s.core.LagAsLeader(int64(session))
}

// Follower returns a lever of the follower that serves a session's connection now, on a server
// WithFollowers: it holds the follower's messages to the leader, or the leader's to it, or both,
// until it is called again. The follower goes on answering pings, until a request of the session
// waits, while the leader may end the session: a client that takes such answers for a proof of life
// is mistaken. Follower returns an error when the session has no connection.
func (s *Server) Follower(session framework.SessionID) (hold func(toLeader, fromLeader bool), err error) {
	return s.core.Follower(int64(session))
}

// DropReply lets the server do the n-th matching request from now, counted from one,
// and then cuts the connection instead of answering. Earlier answers still
// arrive. The client cannot tell whether the request was done.
func (s *Server) DropReply(n int, m Match) *Fault { return &Fault{s.core.DropReply(n, m.match())} }

// DelayReplies delays the answer to every matching request by d, until the fault is
// cancelled. Later answers on that connection wait behind it.
func (s *Server) DelayReplies(d time.Duration, m Match) *Fault {
	return &Fault{s.core.DelayReplies(d, m.match())}
}

// Throttle answers the next matching requests, as many as times says, with code -127 (THROTTLEDOP)
// and does not do them, as an overloaded server. It does not throttle pings and the close of a
// session. A throttled request is not read: leave Match.Path empty.
func (s *Server) Throttle(times int, m Match) *Fault {
	return &Fault{s.core.Throttle(times, m.match())}
}

// Observe calls f with every request that the server has done, in order and
// before the answer leaves. f must be quick and must not call the server. The
// returned function ends the observation.
func (s *Server) Observe(f func(Request)) (stop func()) {
	return s.core.Observe(func(r zkserver.Request) { f(requestOf(r)) })
}

// Freeze stops the server as SIGSTOP stops a process: connections stay open and
// dials succeed, but requests get no answer and no timer runs. Time goes on.
func (s *Server) Freeze() { s.core.Freeze() }

// Thaw lets a frozen server continue, as SIGCONT does. Sessions that are due expire
// before the server reads a request that waited.
func (s *Server) Thaw() { s.core.Thaw() }

// Restart does what clients see of a server's restart or of an ensemble's new
// leader: nodes, sessions and zxid stay, all connections are cut, watches are
// gone, and every session has its full timeout again. It also thaws the server.
func (s *Server) Restart() { s.core.Restart() }

// Skew sets how far the server's clock is ahead of the true time, or behind if d is negative. The
// clock stamps nodes (Ctime, Mtime) and ends TTL nodes, as that of an ensemble's leader does.
// Sessions and their timeouts do not depend on it.
func (s *Server) Skew(d time.Duration) { s.core.Skew(d) }

// Tree returns the node at path and all below it, sorted by path. Without the
// node the result is empty.
func (s *Server) Tree(path string) []Node { return convert(s.core.Tree(path), nodeOf) }

// Node returns a copy of the node at path.
func (s *Server) Node(path string) (Node, bool) {
	n, ok := s.core.Node(path)
	return nodeOf(n), ok
}

// Children returns the sorted names of a node's children. Without the node the
// result is empty.
func (s *Server) Children(path string) []string { return s.core.Children(path) }

// Sessions returns all sessions in order of age.
func (s *Server) Sessions() []Session { return convert(s.core.Sessions(), sessionOf) }

// Watches returns all watches, sorted by path and session.
func (s *Server) Watches() []Watch { return convert(s.core.Watches(), watchOf) }

// Requests returns the number of requests of each operation that the server has received since
// its start, pings included.
func (s *Server) Requests() map[Op]int64 {
	counts := map[Op]int64{}
	for op, n := range s.core.Requests() {
		counts[Op(op)] = n
	}
	return counts
}

// Zxid is the number of the last transaction.
func (s *Server) Zxid() int64 { return s.core.Zxid() }

// Connections is the number of open connections, over links and TCP.
func (s *Server) Connections() int { return s.core.Connections() }

// Reap removes expired nodes: empty containers that had children, and overdue TTL nodes. The server
// does so at each WithContainerInterval; Reap does it at once.
func (s *Server) Reap() { s.core.Reap() }

// Number sets the sequence number of the next child that is created below the node at path. After
// 2147483647 comes -2147483648: a test can reach in a moment what takes years. It returns an error
// when there is no such node.
func (s *Server) Number(path string, next int32) error { return s.core.Number(path, next) }
