package locks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// Revoke requests that the holder of this node (see Entry.Node) releases its lease. The holder sees
// the request by Lease.Revoked, or, in a Java program, by Curator's revocation listener. It is only
// a request: a holder that does not listen goes on. Entry.Revoked reports it.
//
// Revoke adds the request to the record of the node's owner. Where there is none, as in the nodes
// of other libraries and of WithData, it overwrites the node's data with the mark of Curator's
// Revoker. It refuses the candidates of an election, whose data are their ids and who do not
// listen: Election.RequestTransfer asks a leader. The error wraps framework.ErrNotFound when there
// is no such node, or framework.ErrNoAuth: Revoke reads the node, too.
func Revoke(ctx context.Context, client *framework.Client, node string) error {
	if client == nil {
		return errors.New("revoke: the client is nil")
	}
	if p, ok := waitline.PositionOf(node); ok && p.Kind == waitline.Latch {
		return fmt.Errorf("revoke %s: %w: the node is a candidate of an election", node, failure.ErrInvalidPath)
	}
	err := recipe.Sync(ctx, client, node)
	for again := err == nil; again; {
		var data []byte
		var stat framework.Stat
		data, stat, err = client.Get(ctx, node)
		switch {
		case err == nil && stat.EphemeralOwner == 0:
			return fmt.Errorf("revoke %s: %w: the node belongs to no session", node, failure.ErrInvalidPath)
		case err == nil && !isRevoked(data):
			_, err = client.Set(ctx, node, withRevocation(data), stat.Version)
		}
		again = errors.Is(err, framework.ErrBadVersion) // another program has written meanwhile
	}
	if errors.Is(err, framework.ErrNoNode) {
		err = errHolderGone
	}
	return failure.Wrap("revoke", node, err)
}

// Evict deletes the node of a holder or a waiter, and so takes its owner out of the lock. The token
// is the one that Inspect has reported for the node: a newer node of the same name stays.
//
// Not guaranteed: that the owner stops. Its lease ends when it notices that its node is gone, which
// may be after the next holder was granted: a fence on the tokens keeps it from doing harm. A
// waiter whose node is gone may be granted beside the next one when its predecessor leaves, until
// it notices that. Evict is for operators: for an owner that hangs, or a node that belongs to no
// session. If a claim is released and claimed again between Evict's read and its deletion, Evict
// may delete the new one.
//
// The error wraps framework.ErrNotFound when there is no such node, framework.ErrBadVersion when
// its data was changed meanwhile, or framework.ErrNoAuth.
func Evict(ctx context.Context, client *framework.Client, node string, token int64) error {
	if client == nil {
		return errors.New("evict: the client is nil")
	}
	stat, err := recipe.SyncedStat(ctx, client, node)
	if err == nil && stat.Czxid != token {
		err = fmt.Errorf("%w: the node with the token %d was replaced by one with %d", errHolderGone, token, stat.Czxid)
	}
	if err == nil {
		err = client.Delete(ctx, node, stat.Version)
	}
	if errors.Is(err, framework.ErrNoNode) {
		err = errHolderGone
	}
	return failure.Wrap("evict", node, err)
}

// Revoked is closed when another client requests the release of any of the lease's nodes; see
// Revoke. The lease remains valid: the holder may finish its work, and should then release. The
// nodes are watched from the first call on. When Curator's Revoker overwrites the owner's record
// after that, the lease writes the record back, with the request in it. Nobody can request the
// release of a lease on another store than ZooKeeper.
func (l *Lease) Revoked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked == nil {
		l.revoked = make(chan struct{})
		tell := sync.OnceFunc(func() { close(l.revoked) })
		l.forEachNode(func(part *Lease, node string) {
			if part.isOnZooKeeper() {
				go part.watchForRevocation(l.Context(), node, tell)
			}
		})
	}
	return l.revoked
}

// watchForRevocation watches a node's data until ctx, which is a lease's, ends.
func (l *Lease) watchForRevocation(ctx context.Context, node string, tell func()) {
	own := ownNode{s: l.session, path: node}
	err := recipe.WatchUntilGone(ctx, own.s, primitives.Created{Path: node},
		func(data []byte, stat framework.Stat) error {
			if isRevoked(data) {
				tell()
			}
			return own.restoreRecord(ctx, data, stat)
		})
	if errors.Is(err, framework.ErrNodeGone) { // the next proof of life would find that out later
		l.loseNodes(err)
	}
}

// ownNode knows what a holder has written into its node.
type ownNode struct {
	s      *framework.Session
	path   string
	record []byte // nil while it is not known
	zxid   int64  // the transaction that created the node
}

// restoreRecord writes the owner's record back if another program has overwritten it with Curator's
// mark. It returns recipe.ErrAgain, after a pause, if the node has to be read again.
func (o *ownNode) restoreRecord(ctx context.Context, data []byte, stat framework.Stat) error {
	if _, ok := parseOwner(data); ok {
		o.record, o.zxid = withRevocation(data), stat.Czxid
	}
	if o.record == nil || o.zxid != stat.Czxid || !bytes.Equal(data, revokeMark) {
		return nil
	}
	if _, err := o.s.Set(ctx, o.path, o.record, stat.Version); !failure.IsTransient(err) {
		return nil
	}
	if err := recipe.Pause(ctx, time.Second); err != nil {
		return err
	}
	return recipe.ErrAgain
}

// loseNodes ends the lease that has the nodes.
func (l *Lease) loseNodes(cause error) {
	owner := l
	for owner.outer != nil {
		owner = owner.outer
	}
	owner.endLease(cause, false)
}
