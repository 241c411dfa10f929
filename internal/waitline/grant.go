package waitline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// Grant is a granted contender, and the hold on its node. A lease or a term stands for as long as
// the hold.
type Grant struct {
	primitives.Hold
	contender *Contender
	guarded   atomic.Bool

	mu       sync.Mutex
	deletion primitives.Discarded // nil before Release
}

// Hold returns the grant of a contender that Wait or Try has returned. The context of the hold
// carries the values of values. If key is not nil, that context also has the grant as the value of
// key; see HeldKey. Hold fails when the session has ended. The contender leaves then.
func (c *Contender) Hold(values context.Context, key any) (*Grant, error) {
	g := &Grant{contender: c}
	if key != nil {
		values = context.WithValue(values, key, g)
	}
	var err error
	if g.Hold, err = primitives.Of(c.s).Hold(values, c.node); err != nil {
		c.Leave(nil)
		return nil, err
	}
	return g, nil
}

// Node is the granted node. Its Zxid is the fencing token.
func (g *Grant) Node() primitives.Created { return g.contender.node }

// Session is the session of the node.
func (g *Grant) Session() *framework.Session { return g.contender.s }

// SetGuarded says that transactions check the node. From then on, a release wakes the next local
// contender only when the node is gone. Until then, a transaction that checks the node may come
// late on another connection, and the servers would apply it behind writes of the next holder: they
// may refuse the deletion at first, and its place in this connection's queue is no order for other
// connections.
func (g *Grant) SetGuarded() { g.guarded.Store(true) }

// IsGuarded reports whether SetGuarded was called.
func (g *Grant) IsGuarded() bool { return g.guarded.Load() }

// BeginLeave is Contender.BeginLeave, for a caller whose own transaction deletes the node.
func (g *Grant) BeginLeave() { g.contender.BeginLeave() }

// Release ends the hold with a cause, unless the hold has ended already. Then it deletes the node
// in the background and wakes the next local contender. Once the deletion is in the connection's
// queue, Release calls queued, unless that is nil. If the session ends before, it does not call
// queued. Only the first call counts. Later ones return the same deletion.
//
// If the grant is guarded, Done of the deletion is closed after the next local contender was woken.
func (g *Grant) Release(cause error, queued func()) primitives.Discarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deletion != nil {
		return g.deletion
	}
	g.End(cause)
	if errors.Is(g.Err(), framework.ErrNodeGone) {
		g.contender.Unlink()
	}
	c := g.contender
	if g.IsGuarded() {
		c.BeginLeave()
		g.deletion = primitives.Then(primitives.Of(c.s).Discard(queued, c.node.Path), c.WakeNext)
	} else {
		g.deletion = c.Leave(queued)
	}
	c.line.hint.recordRelease(c.s.ID(), c.local.position, g.deletion)
	return g.deletion
}

// Downgrade joins a reader with the number of a writer that holds. The reader is granted at once.
// Curator does the same (CURATOR-621). The transaction that creates the reader's node checks guard,
// which is the writer's. Downgrade fails with ErrPlaceLost if the writer has left.
func (l *Line) Downgrade(ctx context.Context, of *Grant, data []byte, guard framework.Op) (*Contender, error) {
	writer := of.contender
	c := l.newContender(writer.s)
	c.local.position = Position{Kind: Read, Seq: writer.local.position.Seq}
	if !c.localContenders.addDowngraded(&writer.local, &c.local) {
		c.localContenders.releaseShared()
		return nil, ErrPlaceLost
	}
	created, err := primitives.Of(c.s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: l.dir, Name: string(Read) + writer.local.position.sequenceDigits(), Data: data,
		Unnumbered: true, With: []framework.Op{guard},
	})
	if err != nil {
		c.leaveIfJoined()
		return nil, err
	}
	c.node = created.Nodes[0]
	c.localContenders.downgraded(&c.local)
	return c, nil
}

// heldKey identifies the lock or election at a path of a client.
type heldKey struct {
	client *framework.Client
	path   string
}

// HeldKey is the context key of the lock or election at a path. In the context of a lease or a
// term, the value of this key is the lease or the term. So a wait for the same path under that
// context can be refused: the holder would wait for itself.
func HeldKey(client *framework.Client, path string) any { return heldKey{client, path} }

// Holder is a lease or a term.
type Holder interface {
	// Err is nil until the lease or the term ends.
	Err() error
}

// HolderOf returns the lease or term that ctx belongs to, or nil if there is none or if it has
// ended. The key is one of HeldKey.
func HolderOf(ctx context.Context, key any) Holder {
	h, _ := ctx.Value(key).(Holder)
	if h == nil || h.Err() != nil {
		return nil
	}
	return h
}
