package locks

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// revokeMark is what Curator's Revoker writes into the node of a holder that it asks to release.
var revokeMark = []byte("__REVOKE__")

// Revoke asks the holder whose node this is (see Contender.Node) to release: the holder sees it by
// Lease.Revoked, or, in a Java program, by Curator's revocation listener. It is a request, nothing
// more: who does not listen does not notice. The node's data, and with it the description of the
// owner, is overwritten, as Curator does. The error wraps ErrHolderGone when there is no such node.
func Revoke(ctx context.Context, client *framework.Client, node string) error {
	if client == nil {
		return errors.New("revoke: the client is nil")
	}
	_, name := framework.Split(node)
	if _, ok := parse(name); !ok && framework.ValidatePath(node) == nil {
		return fmt.Errorf("revoke %s: no node of a lock's contender", node)
	}
	_, err := client.Set(ctx, node, revokeMark, framework.AnyVersion)
	if errors.Is(err, framework.ErrNoNode) {
		err = ErrHolderGone
	}
	return framework.Wrap("revoke", node, err)
}

// Revoked is closed when somebody asks the holder to release; see Revoke. Nothing happens by itself: the
// holder may finish what it does, and should then release. The node is watched from the first call on.
func (l *Lease) Revoked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked == nil {
		l.revoked = make(chan struct{})
		go l.awaitRevocation(l.tenure.Context(), l.revoked)
	}
	return l.revoked
}

// awaitRevocation watches the node's data for as long as the lease stands.
func (l *Lease) awaitRevocation(ctx context.Context, revoked chan struct{}) {
	for {
		data, _, w, err := l.session.WatchData(ctx, l.node)
		if err != nil { // the lease has ended, or the node is gone and it soon will
			return
		}
		if bytes.Equal(data, revokeMark) {
			w.Stop()
			close(revoked)
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
