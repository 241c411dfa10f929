package framework

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Stat is what a server knows of a node beside its data.
type Stat struct {
	// Czxid, Mzxid and Pzxid are the transactions that created the node, changed its data last, and
	// changed its children last.
	Czxid, Mzxid, Pzxid int64
	// Ctime and Mtime are the times of the first two by the ensemble's leader's clock.
	Ctime, Mtime time.Time
	// Version, Cversion and Aversion count changes of the data, the children and the ACL.
	Version, Cversion, Aversion int32
	// EphemeralOwner is the session that the node lives with, or 0.
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
}

// Mode is a created node's kind.
type Mode int32

// The modes of a created node.
const (
	// Persistent stays until it is deleted.
	Persistent Mode = Mode(wire.FlagPersistent)
	// Ephemeral is deleted when the creator's session ends.
	Ephemeral Mode = Mode(wire.FlagEphemeral)
	// PersistentSequential gets a rising number at the end of its name.
	PersistentSequential Mode = Mode(wire.FlagSequential)
	// EphemeralSequential is ephemeral and sequential.
	EphemeralSequential Mode = Mode(wire.FlagEphemeralSequential)
	// Container is deleted by the server some time after its last child.
	Container Mode = Mode(wire.FlagContainer)
)

// AnyVersion matches every version of a node.
const AnyVersion int32 = -1

// Created is what is known of a node that this session has created.
type Created struct {
	// Path of the node, with its number if it is sequential.
	Path string
	// Zxid is the transaction that created it: it rises with every transaction of the ensemble.
	Zxid int64
}

// OpResult is what one operation of a transaction returned.
type OpResult struct {
	// Path of a created node.
	Path string
	// Stat of a node after a set.
	Stat Stat
	// Err is why this operation was refused; nil for those before it.
	Err error
}

// EventKind is what has happened to a watched node.
type EventKind int

// The kinds of events.
const (
	NodeCreated EventKind = iota + 1
	NodeDeleted
	NodeChanged
	ChildrenChanged
	// Reconnected tells a watch that the connection was replaced: look again.
	Reconnected
)

// Event tells of a change that a watch has seen.
type Event struct {
	Kind EventKind
	Path string
	// Err is why a node is not watched; Kind is 0 then.
	Err error
}
