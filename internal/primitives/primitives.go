// Package primitives declares the operations of a session that only recipes use: protected creates,
// holds, deletions in the background, and values that recipes on one session share. Package
// framework implements it; Of returns the implementation of a session.
package primitives

import (
	"context"
	"net"

	"github.com/lockstep-go/lockstep/internal/lifetime"
)

// OfSession is package framework's implementation of Of, which it sets when it is initialized.
var OfSession func(session any) Operations

// DialerOf returns what framework.WithDialer has given to a client, a *framework.Client, or nil.
// Package framework sets it when it is initialized.
var DialerOf func(client any) func(ctx context.Context, network, address string) (net.Conn, error)

// Of returns the operations of a session, a *framework.Session, which this package cannot name:
// framework imports it.
func Of(session any) Operations { return OfSession(session) }

// Operations are a session's operations for recipes.
type Operations interface {
	// CreateProtected creates ephemeral nodes, and their directory where it is missing.
	//
	// Guarantee: if the error is nil, exactly these nodes exist. Otherwise none of them remains in
	// the end. Their names have a UUID, by which CreateProtected finds them when the reply is lost.
	// If the caller gives up, the create is finished and undone in the background, until the nodes
	// are deleted or the session has ended. The effects of the other operations of the transaction
	// are not undone. If the servers refuse one of those, the error is a *framework.TxError whose
	// Index counts from Count, and no operation of the transaction was applied.
	//
	// The algorithm is Curator's protected mode. In addition, it sends a sync before it looks for
	// the nodes, because another server may not have applied the create yet (the gap of CURATOR-62,
	// 79 and 205).
	CreateProtected(ctx context.Context, c ProtectedCreate) (ProtectedNodes, error)

	// Hold returns a hold on nodes that this session has created. Its context carries the values of
	// ctx. It ends with the session, when any of the nodes is deleted, or by End. The session
	// notices a deletion with its next proofs of life, within about T/4 for each 100 nodes that it
	// holds. It notices the deletion at once if it has held the node for T/2. If a node of the same
	// name is created before the session has noticed, the hold ends by T/2 after its begin or after
	// a reconnect: the zxid tells the two nodes apart. A guard that checks a node by its name
	// cannot, so guard with a node whose name is never used again.
	//
	// A dormant session wakes first. That takes one or two requests, and longer while the
	// connection is suspended; Hold waits for that until ctx ends. Hold fails if the session has
	// ended. Each grant needs a hold: without it, the holder does not learn in time that its
	// session has expired.
	Hold(ctx context.Context, node Created, more ...Created) (Hold, error)

	// StayAwake makes the session send proofs of life, because a call of Hold is likely soon.
	StayAwake()
	// MaySleep undoes one call of StayAwake. The session stays awake for a session timeout after
	// the last of them.
	MaySleep()
	// BeginJoin makes the session send proofs of life while a recipe joins a line, because the
	// recipe may be granted at once. Unlike StayAwake it is no reason to leave a server that is
	// slow: the session falls asleep if the proofs are answered late.
	BeginJoin()
	// EndJoin undoes one call of BeginJoin. The session stays awake for a session timeout after the
	// last of them.
	EndJoin()

	// Discard deletes ephemeral nodes of this session in the background, in one transaction. It
	// checks no owner, so the nodes' names must be such that no other session uses them, now or
	// later: protected names are. It repeats that until the nodes are gone or the session has
	// ended, and returns at once. Client.Close waits for the deletion. Once the session has ended,
	// Discard sends no request: the servers delete all nodes of the session together.
	//
	// It calls queued once, unless that is nil: when the deletion is in the connection's queue, or
	// when the nodes are known to be gone. The servers get each later request of this session after
	// the deletion. If the connection is lost before the answer, the deletion is the first request
	// on the next connection. This order does not hold for a deletion that the servers refuse,
	// which is repeated with pauses. If the session ends before, Discard does not call queued.
	// queued must not block. It may be called before Discard returns.
	Discard(queued func(), node string, more ...string) Discarded

	// DiscardOwn is Discard for a node whose name other sessions may use, too. Before each try it
	// checks that the node is still the one that this session has created. companions are nodes
	// with names that no other session uses. They are deleted in the same transaction, so they stay
	// while the servers refuse to delete the node: half of a claim must not go. If another session
	// has the node by then, only the companions are deleted.
	DiscardOwn(queued func(), node Created, companions ...string) Discarded

	// SyncForWatch brings this session's server up to date for a reader that watches what it reads,
	// or that may read again. If strict, as before the first read, it is Session.Sync. Before a
	// later read, such as after a reconnect, ZooKeeper's own sync is enough, which writes nothing.
	// The leader may answer that before it has applied what a follower has acknowledged, and so may
	// a leader that was deposed and does not know it yet. The reader then goes on with an older
	// state. It learns of the rest by its watch, or by the reconnect when the deposed leader steps
	// down.
	SyncForWatch(ctx context.Context, path string, strict bool) error

	// Share returns the value that this session has for a key, and counts one more use of it. start
	// makes the value for the first use. Each use ends with Unshare; after the last use the session
	// forgets the value. Recipes on one session share state by it, such as the waiters for one
	// lock. Use a key of an unexported type.
	Share(key any, start func() any) any

	// Unshare ends one use of a shared value.
	Unshare(key any)

	// ListAll lists the children of any number of nodes, in the order of the paths. Each list has
	// an error of its own, as with Session.GetAll, which also says how they are divided among
	// requests.
	ListAll(ctx context.Context, paths ...string) ([]Listing, error)
}

// Listing is what ListAll has found below one node.
type Listing struct {
	// Names are the names of its children, in no order.
	Names []string
	// Err is why the children could not be listed, such as framework.ErrNoNode.
	Err error
}

// Created is a node that this session has created.
type Created struct {
	// Path is the path of the node, with its number if it is sequential.
	Path string
	// Zxid is the transaction that created the node. Zxids rise with every transaction of the
	// ensemble.
	Zxid int64
}

// ProtectedCreate says what CreateProtected creates.
type ProtectedCreate struct {
	// Dir is the nodes' directory. It is created if it is missing.
	Dir string
	// Name is the nodes' name after the protection. All nodes of one create have the same UUID in
	// their protection.
	Name string
	// Plain leaves the protection out of the name. Then the session finds its node by the node's
	// owner. So the caller must ensure that the session does not create a node of this name in
	// another call meanwhile.
	Plain bool
	// Unnumbered leaves the sequence number out of the name.
	Unnumbered bool
	// Data is the data of each node.
	Data []byte
	// Count is the number of nodes; 0 means 1. With Unnumbered it must not be more than 1.
	Count int
	// With are other operations of the same transaction: the servers apply all operations or none.
	With []Op
	// List asks for a list of Dir in the same round trip, right after the create.
	List bool
	// Stat, unless it is "", is the path of a node whose stat is read in the same round trip, right
	// after the create. Do not combine it with List.
	Stat string
}

// ProtectedNodes is what CreateProtected has created and read.
type ProtectedNodes struct {
	// Nodes are the created nodes.
	Nodes []Created
	// Names is the list for ProtectedCreate.List, or the later one in which CreateProtected has
	// found the nodes after a lost reply. It is nil if there is none, because the directory was
	// missing or the connection was lost. Then the caller lists Dir itself.
	Names []string
	// StatCzxid is the transaction that created the node of ProtectedCreate.Stat. It is 0 if that
	// is not known, because the node is missing, the create needed a second try, or the connection
	// was lost. Then the caller reads the node itself.
	StatCzxid int64
}

// Hold is an owned node, or several, and a context that is done when one of the nodes is deleted or
// the session has ended.
type Hold interface {
	// Context is done when the hold has ended. Its cause says why.
	Context() context.Context
	// Lifetime is the hold's lifetime, for children and joins of it. Do not call its End; call the
	// hold's End.
	Lifetime() *lifetime.Lifetime
	// Err is nil until the hold ends, and then says why it ended. It reads the clock.
	Err() error
	// End ends the hold with a cause. Only the first call counts. End does not delete the nodes.
	End(cause error)
}

// Discarded is a deletion in the background.
type Discarded interface {
	// Done is closed when the nodes are gone or the session has ended.
	Done() <-chan struct{}
	// Wait waits until the servers have confirmed that the nodes are gone. When the session or ctx
	// ends before, the error wraps framework.ErrUnconfirmed and the reason: why the session has
	// ended, why the servers refuse the deletion, or else the end of ctx.
	Wait(ctx context.Context) error
	// Err returns that reason. It is nil after the confirmation, and while there is no answer.
	Err() error
	// Zxid is the transaction that deleted the nodes, or 0 if it is not known. Call it after Done
	// is closed.
	Zxid() int64
}

// Then returns the deletion with a step at its end: when it has ended, the step runs, and then Done
// is closed. Wait does not wait for the step.
func Then(d Discarded, step func()) Discarded {
	t := discardedThen{d, make(chan struct{})}
	go func() {
		defer close(t.done)
		<-d.Done()
		step()
	}()
	return t
}

// discardedThen is the deletion of Then.
type discardedThen struct {
	Discarded
	done chan struct{}
}

func (d discardedThen) Done() <-chan struct{} { return d.done }
