package framework

import (
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Stat is a node's metadata.
type Stat struct {
	// Czxid, Mzxid and Pzxid are the transactions that created the node, changed its data last, and
	// changed its children last.
	Czxid, Mzxid, Pzxid int64
	// Ctime and Mtime are the times of Czxid and Mzxid by the clock of the ensemble's leader. They
	// are the zero time if that clock was outside the years 1 to 9998.
	Ctime, Mtime time.Time
	// Version, Cversion and Aversion count changes of the data, the children and the ACL.
	Version, Cversion, Aversion int32
	// EphemeralOwner is the ID of the session with which the node is deleted, or 0.
	EphemeralOwner SessionID
	// DataLength is the number of bytes of the node's data.
	DataLength int32
	// NumChildren is the number of the node's children.
	NumChildren int32
}

// Mode is a created node's kind.
type Mode int32

// The modes of a created node.
const (
	// Persistent stays until it is deleted.
	Persistent Mode = Mode(wire.FlagPersistent)
	// Ephemeral is deleted when the creator's session ends.
	Ephemeral Mode = Mode(wire.FlagEphemeral)
	// PersistentSequential is persistent, and the server adds a number at the end of its name,
	// which rises from node to node of a directory.
	PersistentSequential Mode = Mode(wire.FlagSequential)
	// EphemeralSequential is ephemeral and sequential.
	EphemeralSequential Mode = Mode(wire.FlagEphemeralSequential)
	// Container is deleted by the server some time after its last child.
	Container Mode = Mode(wire.FlagContainer)
)

func (m Mode) String() string {
	switch m {
	case Persistent:
		return "persistent"
	case Ephemeral:
		return "ephemeral"
	case PersistentSequential:
		return "persistent sequential"
	case EphemeralSequential:
		return "ephemeral sequential"
	case Container:
		return "container"
	}
	return fmt.Sprintf("mode %d", int32(m))
}

// Node is what GetAll has read of one node.
type Node struct {
	// Data is the node's data.
	Data []byte
	// Stat is the node's metadata.
	Stat Stat
	// Err is why the node was not read, such as ErrNoNode.
	Err error
}

// AnyVersion matches every version of a node.
const AnyVersion int32 = -1

// OpResult is what one operation of a transaction returned.
type OpResult struct {
	// Path of a created node.
	Path string
	// Stat of a node after a set.
	Stat Stat
	// Zxid is the transaction, if it has happened: it is the Czxid of a created node.
	Zxid int64
	// Err is why this operation was refused. It is nil for the operations before the refused one.
	Err error
}

// EventKind is the kind of a change of a watched node.
type EventKind int

// The kinds of events.
const (
	// NodeCreated says that a missing node was created.
	NodeCreated EventKind = iota + 1
	// NodeDeleted says that the node was deleted.
	NodeDeleted
	// NodeChanged says that the node's data was written.
	NodeChanged
	// ChildrenChanged says that a child was created or deleted.
	ChildrenChanged
	// Reconnected says that the connection was replaced, and that the watch may have missed a
	// change: read the node again.
	Reconnected
)

func (k EventKind) String() string {
	switch k {
	case NodeCreated:
		return "node created"
	case NodeDeleted:
		return "node deleted"
	case NodeChanged:
		return "node changed"
	case ChildrenChanged:
		return "children changed"
	case Reconnected:
		return "reconnected"
	}
	return fmt.Sprintf("event %d", int(k))
}

// Event is a change that a watch has seen.
type Event struct {
	// Kind is the kind of the change.
	Kind EventKind
	// Path is the node's path, below the client's root.
	Path string
	// Err is why a node is not watched; Kind is 0 then.
	Err error
}
