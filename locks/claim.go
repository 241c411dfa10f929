package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// Claim is the simplest exclusive lock: one ephemeral node, whose creator holds it.
//
//	<path>                     ephemeral; its directory is a container
//	<path's dir>/_c_<uuid>-<path's name>-hold   ephemeral; a name of this hold alone, which Lease.Guard checks
//
// Guarantee: one holder at a time. Not guaranteed: any order among those who wait, each of whom is woken by
// the holder's end; prefer a Mutex where many wait. When somebody else deletes <path>, its holder's guard is
// refused only once the holder has noticed, which is at once while it is connected.
type Claim struct{ line *Line }

// NewClaim returns a claim on path. Nothing is created before it is used. An argument that cannot be
// used makes every call return an error that says so.
func NewClaim(client *framework.Client, path string, opts ...Option) *Claim {
	l := NewLine(client, path, MutexKind, opts...)
	l.label = "claim"
	l.rejectOption(l.reentry, "WithReentry is for mutexes and read-write locks")
	l.rejectOption(l.queued != nil, "WithOnWait is for locks with a line")
	l.rejectOption(l.kazoo, "WithKazoo is for mutexes and read-write locks")
	l.kind = claimKind
	return &Claim{l}
}

// Path is the claim's node.
func (c *Claim) Path() string { return c.line.path }

// TryLock claims the path or returns an error that wraps ErrNotAcquired, whatever it is that lies there.
func (c *Claim) TryLock(ctx context.Context) (*Lease, error) {
	return c.line.acquire(ctx, "try", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		d := pathMutexOf(s, c.line)
		if !d.tryLock() {
			return nil, ErrNotAcquired
		}
		return c.createAndLease(ctx, d)
	})
}

// Lock waits until the path could be claimed. Its errors are those of Mutex.Lock, or wrap ErrNotClaim.
func (c *Claim) Lock(ctx context.Context) (*Lease, error) {
	return c.line.acquire(ctx, "acquire", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		for {
			d := pathMutexOf(s, c.line)
			if err := d.lock(ctx); err != nil {
				return nil, err
			}
			lease, err := c.createAndLease(ctx, d)
			if !errors.Is(err, ErrNotAcquired) {
				return lease, err
			}
			if err := c.waitUntilGone(ctx, s); err != nil {
				return nil, err
			}
		}
	})
}

// waitUntilGone waits until the node is gone, or somebody has changed it.
func (c *Claim) waitUntilGone(ctx context.Context, s *framework.Session) error {
	_, st, w, err := s.WatchData(ctx, c.line.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	if st.EphemeralOwner == 0 {
		return fmt.Errorf("%w: it has %d children and %d bytes of data", ErrNotClaim, st.NumChildren, st.DataLength)
	}
	select {
	case <-w.C():
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-s.Done():
		return context.Cause(s.Context())
	}
}

// createAndLease creates the node and hands out the lease. It has entered the path mutex, which is left when the node is
// gone or was not created.
func (c *Claim) createAndLease(ctx context.Context, d *pathMutex) (*Lease, error) {
	node, err := c.createNodes(ctx, d)
	if err != nil {
		return nil, err
	}
	lease := &Lease{path: c.line.name, kind: claimKind, node: node.Path, fence: node.fence, token: node.Zxid, session: d.s,
		key: heldKey{c.line.client, c.line.path}, back: func(early bool) releaseProgress { return d.deleteNodesAndUnlock(early, node) }}
	if err := lease.standWithHold(ctx, node.Path, node.fence); err != nil {
		d.deleteNodesAndUnlock(false, node)
		return nil, err
	}
	go endHoldWithNode(lease.hold, node.Created)
	return lease.startTimers(c.line.maxHold), nil
}

// endHoldWithNode ends a hold when its node is gone or another one: a proof of life would find a node of that name.
func endHoldWithNode(h *framework.Hold, node framework.Created) {
	for {
		_, st, w, err := h.Session().WatchData(h.Context(), node.Path)
		if errors.Is(err, framework.ErrNoNode) || err == nil && st.Czxid != node.Zxid {
			h.End(fmt.Errorf("%w: %s", framework.ErrNodeGone, node.Path))
		}
		if err != nil {
			return
		}
		select {
		case <-w.C():
		case <-h.Context().Done():
			w.Stop()
			return
		}
	}
}

// claimedNode is the node of a claim, and the fence that was created and will be deleted with it.
type claimedNode struct {
	framework.Created
	fence string
}

// createNodes creates the node and its fence. The desk stays entered until the outcome is known, even if ctx ends before.
func (c *Claim) createNodes(ctx context.Context, d *pathMutex) (claimedNode, error) {
	if ctx.Err() != nil {
		d.unlock()
		return claimedNode{}, framework.Ended(ctx)
	}
	dir, name := framework.Split(c.line.path)
	fence := framework.Join(dir, framework.ProtectedPrefix+uuid.NewString()+"-"+name+"-hold")
	node := framework.ProtectedCreate{Dir: dir, Name: name, Plain: true, Data: c.line.ownerRecord(ctx), Count: 1, Mode: framework.Ephemeral,
		With: []framework.Op{framework.CreateOp(fence, nil, framework.Ephemeral)}}
	type outcome struct {
		nodes []framework.Created
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		made, err := d.s.Primitives().CreateProtected(context.WithoutCancel(ctx), node) // ends with the session
		done <- outcome{made.Nodes, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, framework.ErrNodeExists) {
			o.err = ErrNotAcquired
		}
		if o.err != nil {
			d.unlock()
			return claimedNode{}, o.err
		}
		return claimedNode{o.nodes[0], fence}, nil
	case <-ctx.Done():
		go func() { // nobody waits for the outcome any more
			if o := <-done; o.err == nil {
				d.deleteNodesAndUnlock(false, claimedNode{o.nodes[0], fence})
			} else {
				d.unlock()
			}
		}()
		return claimedNode{}, framework.Ended(ctx)
	}
}

// pathMutex lets one goroutine of a session at a time claim a path and hold it. So a node that the session owns
// shows that a create whose reply was lost was applied.
type pathMutex struct {
	s    *framework.Session
	line *Line
	turn chan struct{} // has room for one; the session's goroutines share it
}

// pathMutexKey finds the path mutex of a path in a session.
type pathMutexKey struct{ path string }

// pathMutexOf returns the session's desk, for one visit.
func pathMutexOf(s *framework.Session, l *Line) *pathMutex {
	turn := s.Primitives().Share(pathMutexKey{l.path}, func() any { return make(chan struct{}, 1) }).(chan struct{})
	return &pathMutex{s, l, turn}
}

// tryLock enters the path mutex if nobody is there; else the visit is over.
func (d *pathMutex) tryLock() bool {
	select {
	case d.turn <- struct{}{}:
		return true
	default:
		d.s.Primitives().Unshare(pathMutexKey{d.line.path})
		return false
	}
}

// lock waits until nobody else is there. With an error the visit is over.
func (d *pathMutex) lock(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		d.s.Primitives().Unshare(pathMutexKey{d.line.path})
		return framework.Ended(ctx)
	case <-d.s.Done():
		return context.Cause(d.s.Context())
	}
}

// unlock ends the visit and lets the next goroutine enter.
func (d *pathMutex) unlock() {
	<-d.turn
	d.s.Primitives().Unshare(pathMutexKey{d.line.path})
}

// deleteNodesAndUnlock deletes the fence and the node, if it is still this one, and leaves when they are gone.
func (d *pathMutex) deleteNodesAndUnlock(early bool, node claimedNode) releaseProgress {
	r, discarded := d.line.discardAndReport(early, nil, func(queued func()) *framework.Discarded {
		return d.s.Primitives().DiscardOwn(queued, node.Created, node.fence)
	})
	gone := make(chan struct{})
	r.gone = gone
	go func() {
		defer close(gone)
		<-discarded.Done()
		d.unlock()
	}()
	return r
}
