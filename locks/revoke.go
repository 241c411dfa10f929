package locks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// RevokeMark is what Revoke, like Curator's Revoker, writes into the node of a holder to request its release.
const RevokeMark = "__REVOKE__"

var revokeMark = []byte(RevokeMark)

// Revoke requests that the holder of this node (see Entry.Node) releases its lease. The holder sees the request by Lease.Revoked, or, in a
// Java program, by Curator's revocation listener. It is only a request: a holder that does not listen goes on. Revoke
// overwrites the node's data, and with it the description of the owner, as Curator does. The error wraps ErrHolderGone when there is no
// such node.
func Revoke(ctx context.Context, client *framework.Client, node string) error {
	if client == nil {
		return errors.New("revoke: the client is nil")
	}
	st, err := recipe.SyncedStat(ctx, client, node)
	if err == nil && st.EphemeralOwner == 0 {
		return fmt.Errorf("revoke %s: %w: the node belongs to no session", node, framework.ErrInvalidPath)
	}
	if err == nil {
		_, err = client.Set(ctx, node, revokeMark, framework.AnyVersion)
	}
	if errors.Is(err, framework.ErrNoNode) {
		err = ErrHolderGone
	}
	return failure.Wrap("revoke", node, err)
}

// Evict deletes the node of a holder or a waiter, and so takes its owner out of the lock. The token is the one that Inspect has reported for the
// node: a newer node of the same name stays.
//
// Not guaranteed: that the owner stops. Its lease ends when it notices that its node is gone, which may be after the next holder was
// granted: a fence on the tokens keeps it from doing harm. A waiter whose node is gone may be granted beside the next one when its predecessor leaves,
// until it notices that. Evict is for operators: for an owner that hangs, or a node that belongs to no session. If a claim is released and claimed again
// between Evict's read and its deletion, Evict may delete the new one.
//
// The error wraps ErrHolderGone when there is no such node, framework.ErrBadVersion when its data was changed meanwhile, or
// framework.ErrNoAuth.
func Evict(ctx context.Context, client *framework.Client, node string, token int64) error {
	if client == nil {
		return errors.New("evict: the client is nil")
	}
	st, err := recipe.SyncedStat(ctx, client, node)
	if err == nil && st.Czxid != token {
		err = fmt.Errorf("%w: the node with the token %d was replaced by one with %d", ErrHolderGone, token, st.Czxid)
	}
	if err == nil {
		err = client.Delete(ctx, node, st.Version)
	}
	if errors.Is(err, framework.ErrNoNode) {
		err = ErrHolderGone
	}
	return failure.Wrap("evict", node, err)
}

// Revoked is closed when another client requests the release of any of the lease's nodes; see Revoke. The lease remains valid: the holder may
// finish its work, and should then release. The nodes are watched from the first call on.
func (l *Lease) Revoked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked == nil {
		l.revoked = make(chan struct{})
		tell := sync.OnceFunc(func() { close(l.revoked) })
		l.forEachNode(func(part *Lease, node string) { go part.watchForRevocation(l.Context(), node, tell) })
	}
	return l.revoked
}

// watchForRevocation watches a node's data until ctx, which is a lease's, ends.
func (l *Lease) watchForRevocation(ctx context.Context, node string, tell func()) {
	for {
		data, _, w, err := l.session.WatchData(ctx, node)
		if errors.Is(err, framework.ErrNoNode) { // the next proof of life would find that out later
			l.loseNodes(fmt.Errorf("%w: %s", framework.ErrNodeGone, node))
		}
		if err != nil { // the lease has ended
			return
		}
		if bytes.Equal(data, revokeMark) {
			w.Stop()
			tell()
			return
		}
		select {
		case <-w.C():
		case <-ctx.Done():
			w.Stop()
			return
		}
	}
}

// loseNodes ends the lease that has the nodes.
func (l *Lease) loseNodes(cause error) {
	owner := l
	for owner.outer != nil {
		owner = owner.outer
	}
	owner.endLease(cause)
}
