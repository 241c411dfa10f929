package zktest

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// Op is the operation of a request. Its String is the operation's name.
type Op = wire.Op

// The operations that tests look for most. Match.Func and Requests see the
// others too.
const (
	OpCreate          = wire.OpCreate
	OpCreate2         = wire.OpCreate2
	OpCreateContainer = wire.OpCreateContainer
	OpCreateTTL       = wire.OpCreateTTL
	OpDelete          = wire.OpDelete
	OpExists          = wire.OpExists
	OpGetData         = wire.OpGetData
	OpSetData         = wire.OpSetData
	OpGetACL          = wire.OpGetACL
	OpSetACL          = wire.OpSetACL
	OpGetChildren     = wire.OpGetChildren
	OpGetChildren2    = wire.OpGetChildren2
	OpMulti           = wire.OpMulti
	OpMultiRead       = wire.OpMultiRead
	OpSync            = wire.OpSync
	OpPing            = wire.OpPing
	OpSetWatches      = wire.OpSetWatches
	OpAddWatch        = wire.OpAddWatch
	OpRemoveWatches   = wire.OpRemoveWatches
	OpCloseSession    = wire.OpCloseSession
)

// Code is the error code of an answer, zero for success. Its String is the
// code in words.
type Code = wire.Code

// Request is a request that the server has done: session, operation, path,
// path created, data written, zxid, error code and, of a multi, its parts.
type Request = zkserver.Request

// Match selects requests by operation, path prefix, session and function. All
// that is set must hold; the zero Match selects every request, pings included.
type Match = zkserver.Match

// Fault is a fault asked for with DropReply, DelayReplies or Throttle. Hit tells when it
// has struck; Cancel ends it.
type Fault = zkserver.Fault

// Node is a copy of a node: path, data, ACL, Stat, kind and TTL.
type Node = zkserver.Node

// Kind says what ends a node's life.
type Kind = zkserver.Kind

// The kinds of nodes.
const (
	Persistent = zkserver.Persistent
	Ephemeral  = zkserver.Ephemeral
	Container  = zkserver.Container
	TTL        = zkserver.TTL
)

// ACL is an entry of a node's access control list.
type ACL = wire.ACL

// Stat is what the server tells clients of a node besides its data.
type Stat = wire.Stat

// Session is a copy of a session's state. Remote is the name of the link it is
// connected through, "#" and the number of the dial.
type Session = zkserver.Session

// Watch is one connection's watch on one path.
type Watch = zkserver.Watch

// WatchMode says how long a watch lasts and how far it sees.
type WatchMode = zkserver.WatchMode

// The modes of watches.
const (
	OneShot             = zkserver.OneShot
	PersistentWatch     = zkserver.PersistentWatch
	PersistentRecursive = zkserver.PersistentRecursive
)

// Expire ends a session at once, as its timer would: its ephemeral nodes go, and
// its connection is cut. It returns an error when there is no such session.
func (s *Server) Expire(session int64) error { return s.core.Expire(session) }

// DropReply lets the n-th matching request from now, counted from one, be done,
// and then cuts its connection instead of answering. Earlier answers still
// arrive. The client cannot tell this from a request that was never done.
func (s *Server) DropReply(n int, m Match) *Fault { return s.core.DropReply(n, m) }

// DelayReplies sends the answer to every matching request so much later, until
// cancelled. What follows on that connection waits behind it.
func (s *Server) DelayReplies(d time.Duration, m Match) *Fault { return s.core.DelayReplies(d, m) }

// Throttle answers the next times matching requests with code -127 (THROTTLEDOP) and does not do them, as a server does that has too much to
// do. Pings and the close of a session are never throttled. A throttled request is not read: leave Match.Path empty.
func (s *Server) Throttle(times int, m Match) *Fault { return s.core.Throttle(times, m) }

// Observe calls f with every request that the server has done, in order and
// before the answer leaves. f must be quick and must not call the server. The
// function returned ends the observation.
func (s *Server) Observe(f func(Request)) (stop func()) { return s.core.Observe(f) }

// Freeze stops the server as SIGSTOP stops a process: connections stay open and
// dials succeed, but nothing is answered and no timer runs. Time goes on.
func (s *Server) Freeze() { s.core.Freeze() }

// Thaw lets a frozen server go on. Sessions whose time was over meanwhile expire
// first, before any request that waited is read, as after SIGCONT.
func (s *Server) Thaw() { s.core.Thaw() }

// Restart is what clients see of a server's restart or of an ensemble's new
// leader: nodes, sessions and zxid stay, all connections are cut, watches are
// gone, and every session has its full timeout again. It also thaws.
func (s *Server) Restart() { s.core.Restart() }

// Skew sets how far the server's clock is ahead of the true time, or behind if d is negative. The clock stamps nodes (Ctime, Mtime) and ends
// TTL nodes, as that of an ensemble's leader does. Sessions and their timeouts do not depend on it.
func (s *Server) Skew(d time.Duration) { s.core.Skew(d) }

// Tree returns the node at path and all below it, sorted by path; nothing when
// there is no such node.
func (s *Server) Tree(path string) []Node { return s.core.Tree(path) }

// Node returns a copy of the node at path.
func (s *Server) Node(path string) (Node, bool) { return s.core.Node(path) }

// Children returns the sorted names of a node's children; none when there is no
// such node.
func (s *Server) Children(path string) []string { return s.core.Children(path) }

// Sessions returns all sessions in order of age.
func (s *Server) Sessions() []Session { return s.core.Sessions() }

// Watches returns all watches, sorted by path and session.
func (s *Server) Watches() []Watch { return s.core.Watches() }

// Requests returns how many requests of each operation the server has got since
// its start.
func (s *Server) Requests() map[Op]int64 { return s.core.Requests() }

// Zxid is the number of the last transaction.
func (s *Server) Zxid() int64 { return s.core.Zxid() }

// Connections is the number of open connections, over links and TCP.
func (s *Server) Connections() int { return s.core.Connections() }
