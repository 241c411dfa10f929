// Package primitives declares what the recipes are made of, beside a session's plain operations: protected creates, holds, deletions in the background,
// and values that the users of one session share. framework implements it; Session.Primitives returns it.
package primitives

import (
	"context"

	"github.com/lockstep-go/lockstep/internal/lifetime"
)

// Operations are a session's operations for recipes.
type Operations interface {
	// CreateProtected creates ephemeral nodes, and their directory where it is missing.
	//
	// Guarantee: exactly these nodes stay when the error is nil and, in the end, none otherwise. They are named with a UUID, so that
	// they are found when the reply is lost. If the caller gives up, the create is finished and undone in the background, until the
	// nodes are gone or the session has ended. The effect of the other operations of the transaction is not undone. A refusal by one of
	// those is a *framework.TxError whose Index counts from Count. Then no operation has happened.
	//
	// The algorithm is Curator's protected mode, with a sync before the look-up: another server may not have seen the create yet (the gap of
	// CURATOR-62, 79 and 205).
	CreateProtected(ctx context.Context, c ProtectedCreate) (ProtectedNodes, error)

	// Hold returns a hold on nodes that this session has created. Its context carries the values of ctx. It ends with the session, with any
	// of the nodes, or by End. The end of a node is noticed by the next proofs of life, within about T/4 per 100 nodes held, and once it is held for T/2 at once. A dormant session
	// wakes first, which takes one or two requests, and longer while the connection is suspended: Hold waits for that, as long as ctx lasts. It
	// fails when the session has ended. What is granted rests on a hold: without one, nobody learns in time that the session has expired.
	Hold(ctx context.Context, node string, more ...string) (Hold, error)

	// StayAwake has the session prove its life, because it is likely to be asked for a Hold soon. MaySleep takes one StayAwake back. The
	// session stays awake for a session timeout after that.
	StayAwake()
	// MaySleep takes one StayAwake back.
	MaySleep()

	// Discard deletes ephemeral nodes of this session in the background, in one transaction, until they are gone or the session has ended. It
	// returns at once. Client.Close waits for it. Once the session has ended it sends no request: the servers delete all nodes of the session
	// together.
	//
	// It calls queued once, unless that is nil: when the deletion is in the connection's queue, or when the nodes are known to be gone. A request
	// that this session makes later reaches the servers later. If the connection is lost before the answer, the deletion is the first request on
	// the next one. That order does not hold for a deletion that the servers refuse, which is repeated with pauses. Discard does not call queued
	// if the session ends before. queued must not block; it may be called before Discard returns.
	Discard(queued func(), node string, more ...string) Discarded

	// DiscardOwn is Discard for a node with a name that other sessions may use too: before each try it checks that the node is still the one that
	// this session has created. The nodes of companions, with names that no other session uses, are deleted in the same transaction, or by
	// themselves when the node is another session's.
	DiscardOwn(queued func(), node Created, companions ...string) Discarded

	// Share returns the session's value of a key and counts its user. start makes the value of the first user. Each use ends with Unshare, the
	// last of which forgets the value. Recipes on one session find each other by it, such as waiters for one lock. Use a key of an unexported type.
	Share(key any, start func() any) any

	// Unshare ends one use of a shared value.
	Unshare(key any)

	// ListAll lists the names below many nodes in one request, in the order of the paths. Each has an error of its own, as with Session.GetAll.
	ListAll(ctx context.Context, paths ...string) ([]Listing, error)
}

// Listing is what ListAll found below one node.
type Listing struct {
	// Names are the names of its children, in no order.
	Names []string
	// Err is why there are none, such as framework.ErrNoNode.
	Err error
}

// Created is what is known of a node that this session has created.
type Created struct {
	// Path of the node, with its number if it is sequential.
	Path string
	// Zxid is the transaction that created it: it rises with every transaction of the ensemble.
	Zxid int64
}

// ProtectedCreate says what CreateProtected creates.
type ProtectedCreate struct {
	// Dir is the nodes' directory, which is made where it is missing.
	Dir string
	// Name is their name behind the protection; all have the same UUID.
	Name string
	// Plain leaves the protection out of the name. The caller then makes sure that the session does not create this node elsewhere meanwhile: that
	// the session owns it shows that it was created.
	Plain bool
	// Unnumbered leaves the sequence number out of the name.
	Unnumbered bool
	// Data is what each node holds.
	Data []byte
	// Count is the number of nodes. Default 1. An Unnumbered node is the only one.
	Count int
	// With are other operations of the same transaction: all of it happens, or none.
	With []Op
	// List lists Dir right behind the create, without another round trip.
	List bool
	// Stat, unless it is "", is a node to look at right behind the create, without another round trip. List does not work with it.
	Stat string
}

// ProtectedNodes is what CreateProtected has created and seen.
type ProtectedNodes struct {
	// Nodes are the created nodes.
	Nodes []Created
	// Names is the list that ProtectedCreate.List asks for. It is nil when the caller has to ask again: the directory was missing or the connection was lost.
	Names []string
	// StatCzxid is the transaction that created the node of ProtectedCreate.Stat. It is 0 when the caller has to ask again: the node is missing,
	// the create needed a second try, or the connection was lost.
	StatCzxid int64
}

// Hold is what a session was granted: nodes of its own and a context that is done when one of them or the session is gone.
type Hold interface {
	// Context is done when the hold has ended; its cause says why.
	Context() context.Context
	// Lifetime is how long the hold stands, for what lies within it. End the hold itself.
	Lifetime() *lifetime.Lifetime
	// Err is nil while the hold stands, else why it ended. It reads the clock.
	Err() error
	// End ends the hold with a cause; only the first call counts. The nodes stay.
	End(cause error)
}

// Discarded is a deletion in the background.
type Discarded interface {
	// Done is closed when the nodes are gone or the session has ended.
	Done() <-chan struct{}
	// Zxid is the transaction that deleted the node, or 0 when it is not known. Ask once Done is closed.
	Zxid() int64
}
