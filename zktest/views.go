package zktest

import (
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// Op is the operation of a request.
type Op int32

// The operations that tests match most. Match.Func and Requests see all operations; compare the
// String of the others, for example "setACL".
const (
	OpCreate          = Op(wire.OpCreate)
	OpCreate2         = Op(wire.OpCreate2)
	OpCreateContainer = Op(wire.OpCreateContainer)
	OpDelete          = Op(wire.OpDelete)
	OpExists          = Op(wire.OpExists)
	OpGetData         = Op(wire.OpGetData)
	OpSetData         = Op(wire.OpSetData)
	OpGetChildren     = Op(wire.OpGetChildren)
	OpGetChildren2    = Op(wire.OpGetChildren2)
	OpMulti           = Op(wire.OpMulti)
	OpMultiRead       = Op(wire.OpMultiRead)
	OpSync            = Op(wire.OpSync)
	OpPing            = Op(wire.OpPing)
	OpCloseSession    = Op(wire.OpCloseSession)
)

// String is the operation's name.
func (o Op) String() string { return wire.Op(o).String() }

// Code is the error code of an answer, zero for success.
type Code int32

// String is the code's name.
func (c Code) String() string { return wire.Code(c).String() }

// Request is a request that the server has done.
type Request struct {
	// Session is the session that has sent the request.
	Session framework.SessionID
	// Op is the operation.
	Op Op
	// Path is the path in the request, empty for operations without a path.
	Path string
	// Result is the path of a created node, with its number if that is sequential.
	Result string
	// Data is what a create or a set writes. It is valid until the function that gets the request
	// returns.
	Data []byte
	// Zxid is the number of the server's last transaction after the request.
	Zxid int64
	// Err is the error code of the answer.
	Err Code
	// Parts are the parts of a multi.
	Parts []Request

	writes bool
}

// Writes reports whether the request, or a part of it, creates, deletes or changes a node unless
// the server refuses it. A transaction of checks writes nothing.
func (r Request) Writes() bool { return r.writes }

func requestOf(r zkserver.Request) Request {
	return Request{Session: framework.SessionID(r.Session), Op: Op(r.Op), Path: r.Path, Result: r.Result,
		Data: r.Data, Zxid: r.Zxid, Err: Code(r.Err), Parts: convert(r.Parts, requestOf), writes: r.Writes()}
}

// Match selects requests. All fields that are set must match; the zero Match selects every request,
// pings included.
type Match struct {
	// Op is the operation.
	Op Op
	// Path is a prefix of the request's path, or of the path of a part.
	Path string
	// Session is the session that sends the request.
	Session framework.SessionID
	// Func decides by the whole request. It must not call the server.
	Func func(Request) bool
}

func (m Match) match() zkserver.Match {
	match := zkserver.Match{Op: wire.Op(m.Op), Path: m.Path, Session: int64(m.Session)}
	if m.Func != nil {
		match.Func = func(r zkserver.Request) bool { return m.Func(requestOf(r)) }
	}
	return match
}

// Fault is a fault that DropReply, DelayReplies or Throttle has injected.
type Fault struct{ fault *zkserver.Fault }

// Hit returns a channel that is closed once the fault has had its effect.
func (f *Fault) Hit() <-chan struct{} { return f.fault.Hit() }

// Cancel ends the fault. Later calls do nothing.
func (f *Fault) Cancel() { f.fault.Cancel() }

// Node is a copy of a node.
type Node struct {
	// Path is the node's path.
	Path string
	// Data is the node's data.
	Data []byte
	// ACL are the entries of the node's access control list.
	ACL []framework.ACL
	// Stat is the node's metadata.
	Stat framework.Stat
	// Mode decides what ends the node's life.
	Mode Mode
	// TTL is the time without changes after which a node of mode TTL is deleted, else 0.
	TTL time.Duration
}

func nodeOf(n zkserver.Node) Node {
	return Node{Path: n.Path, Data: n.Data, ACL: convert(n.ACL, aclOf), Stat: statOf(n.Stat), Mode: Mode(n.Kind),
		TTL: n.TTL}
}

func aclOf(a wire.ACL) framework.ACL {
	return framework.ACL{Perms: framework.Perms(a.Perms), Scheme: a.Scheme, ID: a.ID}
}

func statOf(s wire.Stat) framework.Stat {
	return framework.Stat{Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid,
		Ctime: time.UnixMilli(s.Ctime), Mtime: time.UnixMilli(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: framework.SessionID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren}
}

// Mode is the mode of a node: it decides what ends the node's life. It is framework.Mode without
// the sequential ones, since a server keeps only the name with its number.
type Mode uint8

// The modes of nodes.
const (
	// Persistent nodes stay until a client deletes them.
	Persistent = Mode(zkserver.Persistent)
	// Ephemeral nodes are deleted with their sessions.
	Ephemeral = Mode(zkserver.Ephemeral)
	// Container nodes are deleted some time after their last child.
	Container = Mode(zkserver.Container)
	// TTL nodes are deleted after a time without changes and children.
	TTL = Mode(zkserver.TTL)
)

// String is the mode's name in lower case.
func (m Mode) String() string { return zkserver.Kind(m).String() }

// Session is a copy of a session's state.
type Session struct {
	// ID is the session's number.
	ID framework.SessionID
	// Timeout is the timeout that the server has granted.
	Timeout time.Duration
	// Expires is when the session expires if no packet arrives.
	Expires time.Time
	// Connected says whether the session has a connection.
	Connected bool
	// Remote is the name of its link, "#" and the number of the connection, while it is connected.
	Remote string
	// Ephemerals are the sorted paths of the session's ephemeral nodes.
	Ephemerals []string
}

func sessionOf(s zkserver.Session) Session {
	return Session{framework.SessionID(s.ID), s.Timeout, s.Expires, s.Connected, s.Remote, s.Ephemerals}
}

// Watch is one connection's watch on one path.
type Watch struct {
	// Path is the watched path.
	Path string
	// Session is the connection's session.
	Session framework.SessionID
	// Children says that the watch is on the node's children; otherwise it is on existence and
	// data.
	Children bool
	// Mode is how long the watch lasts and which nodes it covers.
	Mode WatchMode
}

func watchOf(w zkserver.Watch) Watch {
	return Watch{w.Path, framework.SessionID(w.Session), w.Children, WatchMode(w.Mode)}
}

// WatchMode is how long a watch lasts and which nodes it covers.
type WatchMode uint8

// The modes of watches.
const (
	// OneShot ends with its first event.
	OneShot = WatchMode(zkserver.OneShot)
	// PersistentWatch lasts until it is removed, for one node.
	PersistentWatch = WatchMode(zkserver.PersistentWatch)
	// PersistentRecursive lasts until it is removed, for a node and all nodes below it. It has no
	// events of lists of children.
	PersistentRecursive = WatchMode(zkserver.PersistentRecursive)
)

// String is the mode's name in lower case.
func (m WatchMode) String() string { return zkserver.WatchMode(m).String() }

// convert returns the results of f for all elements, and nil for none.
func convert[A, B any](all []A, f func(A) B) []B {
	if all == nil {
		return nil
	}
	converted := make([]B, 0, len(all))
	for _, a := range all {
		converted = append(converted, f(a))
	}
	return converted
}
