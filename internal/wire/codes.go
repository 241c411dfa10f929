package wire

import "strconv"

// Op is the operation code of a request.
type Op int32

// The operation codes. No request has OpNotify, OpCreateSession or OpError.
const (
	OpNotify               Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11
	OpError                Op = -1
)

var opNames = map[Op]string{
	OpNotify: "notify", OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren", OpSync: "sync",
	OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check", OpMulti: "multi", OpCreate2: "create2",
	OpReconfig: "reconfig", OpCheckWatches: "checkWatches", OpRemoveWatches: "removeWatches",
	OpCreateContainer: "createContainer", OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL",
	OpMultiRead: "multiRead", OpAuth: "auth", OpSetWatches: "setWatches", OpSASL: "sasl",
	OpGetEphemerals: "getEphemerals", OpGetAllChildrenNumber: "getAllChildrenNumber", OpSetWatches2: "setWatches2",
	OpAddWatch: "addWatch", OpWhoAmI: "whoAmI", OpCreateSession: "createSession", OpCloseSession: "closeSession",
	OpError: "error",
}

// String is the operation's name in ZooKeeper's documentation, or its number if
// it has no name.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return "op " + strconv.Itoa(int(o))
}

// Code is the error code of a reply; OK is zero.
type Code int32

// The error codes of a ZooKeeper server.
const (
	OK                      Code = 0
	RuntimeInconsistency    Code = -2
	DataInconsistency       Code = -3
	ConnectionLoss          Code = -4
	MarshallingError        Code = -5
	Unimplemented           Code = -6
	OperationTimeout        Code = -7
	BadArguments            Code = -8
	UnknownSession          Code = -12
	NewConfigNoQuorum       Code = -13
	ReconfigInProgress      Code = -14
	NoNode                  Code = -101
	NoAuth                  Code = -102
	BadVersion              Code = -103
	NoChildrenForEphemerals Code = -108
	NodeExists              Code = -110
	NotEmpty                Code = -111
	SessionExpired          Code = -112
	InvalidCallback         Code = -113
	InvalidACL              Code = -114
	AuthFailed              Code = -115
	SessionMoved            Code = -118
	NotReadOnly             Code = -119
	NoWatcher               Code = -121
	ReconfigDisabled        Code = -123
	SessionClosedNeedsSASL  Code = -124
	QuotaExceeded           Code = -125
	ThrottledOp             Code = -127
)

var codeNames = map[Code]string{
	OK: "ok", RuntimeInconsistency: "runtime inconsistency", DataInconsistency: "data inconsistency",
	ConnectionLoss: "connection loss", MarshallingError: "marshalling error", Unimplemented: "unimplemented",
	OperationTimeout: "operation timeout", BadArguments: "bad arguments", NoNode: "no node", NoAuth: "no auth",
	BadVersion: "bad version", NoChildrenForEphemerals: "no children for ephemerals", NodeExists: "node exists",
	NotEmpty: "not empty", SessionExpired: "session expired", InvalidCallback: "invalid callback",
	InvalidACL: "invalid ACL", AuthFailed: "auth failed", SessionMoved: "session moved", NotReadOnly: "not read-only",
	NoWatcher: "no watcher", ReconfigDisabled: "reconfig disabled",
	QuotaExceeded: "quota exceeded", ThrottledOp: "throttled",
	SessionClosedNeedsSASL: "session closed, SASL authentication is required",
	ReconfigInProgress:     "reconfiguration in progress", NewConfigNoQuorum: "new configuration has no quorum",
	UnknownSession: "unknown session",
}

// String is the code in words, or its number if there are none.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "code " + strconv.Itoa(int(c))
}

// The xids with a meaning of their own. Other requests do not use them.
const (
	XidNotify     int32 = -1 // a watch event
	XidPing       int32 = -2
	XidAuth       int32 = -4
	XidSetWatches int32 = -8
)

// EventType is the kind of a watch event.
type EventType int32

// The events that a server sends.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

var eventNames = map[EventType]string{
	EventNodeCreated: "NodeCreated", EventNodeDeleted: "NodeDeleted",
	EventNodeDataChanged: "NodeDataChanged", EventNodeChildrenChanged: "NodeChildrenChanged",
}

// String is the event's name, or its number if it has no name.
func (t EventType) String() string {
	if name, ok := eventNames[t]; ok {
		return name
	}
	return "event " + strconv.Itoa(int(t))
}

// StateSyncConnected is the state that every watch event carries.
const StateSyncConnected int32 = 3

// The flags of a create request.
const (
	FlagPersistent              int32 = 0
	FlagEphemeral               int32 = 1
	FlagSequential              int32 = 2
	FlagEphemeralSequential     int32 = 3
	FlagContainer               int32 = 4
	FlagTTL                     int32 = 5
	FlagPersistentSequentialTTL int32 = 6
)

// The permissions of an ACL, as bits.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// The modes of an addWatch request.
const (
	AddWatchPersistent          int32 = 0
	AddWatchPersistentRecursive int32 = 1
)

// The watcher types of checkWatches and removeWatches requests.
const (
	WatcherChildren int32 = 1
	WatcherData     int32 = 2
	WatcherAny      int32 = 3
)

// AnyVersion in a request matches each version of a node.
const AnyVersion int32 = -1
