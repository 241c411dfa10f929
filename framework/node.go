package framework

import "time"

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

// AnyVersion matches every version of a node.
const AnyVersion int32 = -1

// Created is what is known of a node that this session has created.
type Created struct {
	// Path of the node, with its number if it is sequential.
	Path string
	// Zxid is the transaction that created it: it rises with every transaction of the ensemble.
	Zxid int64
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
}
