package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Claim is the simplest exclusive lock: one ephemeral node, held by its creator.
//
//	<path>                             ephemeral; its directory is a container
//	<path's dir>/_c_<uuid>-<name>-hold ephemeral; <name> is that of <path>, and no other hold has the UUID; Lease.Guard checks this node
//
// Guarantee: one holder at a time. Not guaranteed: any order of the waiters, all of which wake at
// the holder's end; prefer a Mutex for many waiters. When another client deletes <path>, the
// servers refuse the holder's guard only after the holder has noticed, which is at once while it is
// connected.
type Claim struct{ lock commonLock }

// NewClaim returns a claim on path.
func NewClaim(client *framework.Client, path string, opts ...ClaimOption) *Claim {
	all, err := optionsOf(opts, ClaimOption.applyToClaim)
	return &Claim{newLock(client, path, claimKind, all, err)}
}

// Path is the claim's node.
func (c *Claim) Path() string { return c.lock.path }

// Validate returns what is wrong with the arguments of NewClaim, as every call does, or nil. It
// sends no request.
func (c *Claim) Validate() error { return c.lock.err }

// Lock waits until it has created the node. Its errors are those of Mutex.Lock, or wrap
// framework.ErrForeign.
func (c *Claim) Lock(ctx context.Context) (*Lease, error) {
	return c.lock.acquire(ctx, "acquire", 0, func(ctx context.Context, s *framework.Session,
		w *waitline.Wait) (*Lease, error) {
		for {
			m := pathMutexOf(s, c.lock.path)
			if err := m.lockPath(ctx); err != nil {
				return nil, err
			}
			lease, err := c.createAndLease(ctx, w.Caller, m)
			if !errors.Is(err, ErrNotAcquired) {
				return lease, err
			}
			if err := c.waitUntilGone(ctx, s, w); err != nil {
				return nil, err
			}
		}
	})
}

// TryLock creates the node at once. If any node is there already, or another goroutine of this
// session holds the claim or is acquiring it, it returns an error that wraps ErrNotAcquired. Its
// other errors are those of Mutex.Lock.
func (c *Claim) TryLock(ctx context.Context) (*Lease, error) {
	return c.lock.acquire(ctx, "try", 0, func(ctx context.Context, s *framework.Session,
		w *waitline.Wait) (*Lease, error) {
		m := pathMutexOf(s, c.lock.path)
		if !m.tryLock() {
			return nil, ErrNotAcquired
		}
		return c.createAndLease(ctx, w.Caller, m)
	})
}

// waitUntilGone waits until the node is gone.
func (c *Claim) waitUntilGone(ctx context.Context, s *framework.Session, w *waitline.Wait) error {
	linked := int64(0)
	err := recipe.WatchUntilGone(ctx, s, primitives.Created{Path: c.lock.path},
		func(data []byte, stat framework.Stat) error {
			if stat.EphemeralOwner == 0 {
				return fmt.Errorf("%w: it has %d children and %d bytes of data", errNotClaim, stat.NumChildren,
					stat.DataLength)
			}
			if linked != stat.Czxid { // its data may change
				linked = stat.Czxid
				w.LinkToHolder(data)
			}
			return nil
		})
	if errors.Is(err, framework.ErrNodeGone) {
		return nil
	}
	return err
}

// createAndLease creates the node and returns the lease. The caller has locked m, which is unlocked
// when the node is gone or was not created.
func (c *Claim) createAndLease(ctx, caller context.Context, m *pathMutex) (*Lease, error) {
	nodes, err := c.createNodes(ctx, m)
	if err != nil {
		return nil, err
	}
	lease := &Lease{client: c.lock.client, path: c.lock.path, kind: claimKind, node: nodes.path,
		guardNode: nodes.guardNode, token: nodes.zxid, session: m.s, key: c.lock.key}
	nodes.Hold, err = primitives.Of(m.s).Hold(leaseContext{caller, lease},
		primitives.Created{Path: nodes.path, Zxid: nodes.zxid},
		primitives.Created{Path: nodes.guardNode, Zxid: nodes.zxid})
	if err != nil {
		nodes.discard(nil)
		return nil, err
	}
	go nodes.endWithNode()
	return c.lock.begin(lease, nodes), nil
}

// claimedNodes are the node of a claim, and the node that its guard checks. One transaction creates
// both, and one deletes both. They implement ownNodes.
type claimedNodes struct {
	primitives.Hold
	mutex     *pathMutex // unlocked when the nodes are gone
	path      string
	guardNode string
	zxid      int64
}

// endWithNode ends the hold when the claim's node is gone, or is another node of the same name,
// which the proof of life cannot tell apart.
func (n *claimedNodes) endWithNode() {
	own := ownNode{s: n.mutex.s, path: n.path}
	err := recipe.WatchUntilGone(n.Context(), own.s, primitives.Created{Path: n.path, Zxid: n.zxid},
		func(data []byte, stat framework.Stat) error { return own.restoreRecord(n.Context(), data, stat) })
	if errors.Is(err, framework.ErrNodeGone) {
		n.End(err)
	}
}

func (n *claimedNodes) Release(cause error, queued func()) primitives.Discarded {
	n.End(cause)
	return n.discard(queued)
}

// discard deletes the guard's node, and the claim's node if it is still this one, in the
// background. It unlocks the mutex when they are gone.
func (n *claimedNodes) discard(queued func()) primitives.Discarded {
	d := primitives.Of(n.mutex.s).DiscardOwn(queued, primitives.Created{Path: n.path, Zxid: n.zxid}, n.guardNode)
	return primitives.Then(d, n.mutex.unlockPath)
}

// createNodes creates the claim's nodes. m stays locked until the outcome is known, even if ctx
// ends before.
//
// The protected node is the guard's, whose name no other create uses: after a lost reply it tells
// what the servers have done, also if another client has deleted the claim's node meanwhile. The
// lease then ends with its node.
func (c *Claim) createNodes(ctx context.Context, m *pathMutex) (*claimedNodes, error) {
	if ctx.Err() != nil {
		m.unlockPath()
		return nil, failure.Ended(ctx)
	}
	dir, name := znode.Split(c.lock.path)
	create := primitives.ProtectedCreate{Dir: dir, Name: name + "-hold", Unnumbered: true,
		With: []framework.Op{framework.CreateOp(c.lock.path, c.lock.contenderData(ctx), framework.Ephemeral)}}
	type outcome struct {
		nodes *claimedNodes
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		created, err := primitives.Of(m.s).CreateProtected(context.WithoutCancel(ctx), create) // ends with the session
		if err != nil {
			done <- outcome{err: err}
			return
		}
		guardNode := created.Nodes[0]
		done <- outcome{nodes: &claimedNodes{mutex: m, path: c.lock.path, guardNode: guardNode.Path,
			zxid: guardNode.Zxid}}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, framework.ErrNodeExists) {
			o.err = ErrNotAcquired
		}
		if o.err != nil {
			m.unlockPath()
		}
		return o.nodes, o.err
	case <-ctx.Done():
		go func() { // the caller has given up
			if o := <-done; o.err == nil {
				o.nodes.discard(nil)
			} else {
				m.unlockPath()
			}
		}()
		return nil, failure.Ended(ctx)
	}
}

// pathMutex lets one goroutine of a session at a time claim a path. The others wait in memory: when
// the node is gone, one of them sends a create, not all. The session's goroutines share it by
// Primitives.Share: each call of pathMutexOf is one use, and ends with one Unshare.
type pathMutex struct {
	s      *framework.Session
	path   string
	locked chan struct{} // has room for one; the session's goroutines share it
}

// pathMutexKey finds the path mutex of a path in a session.
type pathMutexKey struct{ path string }

// pathMutexOf returns the session's path mutex, for one use.
func pathMutexOf(s *framework.Session, path string) *pathMutex {
	locked := primitives.Of(s).Share(pathMutexKey{path}, func() any { return make(chan struct{}, 1) }).(chan struct{})
	return &pathMutex{s, path, locked}
}

// tryLock locks the mutex if it is free. If it is not, tryLock ends the use.
func (m *pathMutex) tryLock() bool {
	select {
	case m.locked <- struct{}{}:
		return true
	default:
		primitives.Of(m.s).Unshare(pathMutexKey{m.path})
		return false
	}
}

// lockPath waits for the mutex. If ctx ends first, lockPath ends the use. After the end of the
// session it need not: the session forgets all shared values.
func (m *pathMutex) lockPath(ctx context.Context) error {
	select {
	case m.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		primitives.Of(m.s).Unshare(pathMutexKey{m.path})
		return failure.Ended(ctx)
	case <-m.s.Done():
		return context.Cause(m.s.Context())
	}
}

// unlockPath lets the next goroutine lock the mutex, and ends the use.
func (m *pathMutex) unlockPath() {
	<-m.locked
	primitives.Of(m.s).Unshare(pathMutexKey{m.path})
}
