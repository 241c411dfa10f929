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
	l.without(l.reentry, "WithReentry is for mutexes and read-write locks")
	l.without(l.queued != nil, "WithQueued is for locks with a line")
	l.without(l.kazoo, "WithKazoo is for mutexes and read-write locks")
	l.kind = claimKind
	return &Claim{l}
}

// Path is the claim's node.
func (c *Claim) Path() string { return c.line.path }

// TryLock claims the path or returns an error that wraps ErrNotAcquired, whatever it is that lies there.
func (c *Claim) TryLock(ctx context.Context) (*Lease, error) {
	return c.line.ask(ctx, "try", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		d := deskOf(s, c.line)
		if !d.tryEnter() {
			return nil, ErrNotAcquired
		}
		return c.take(ctx, d)
	})
}

// Lock waits until the path could be claimed. Its errors are those of Mutex.Lock, or wrap ErrNotClaim.
func (c *Claim) Lock(ctx context.Context) (*Lease, error) {
	return c.line.ask(ctx, "acquire", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		for {
			d := deskOf(s, c.line)
			if err := d.enter(ctx); err != nil {
				return nil, err
			}
			lease, err := c.take(ctx, d)
			if !errors.Is(err, ErrNotAcquired) {
				return lease, err
			}
			if err := c.await(ctx, s); err != nil {
				return nil, err
			}
		}
	})
}

// await waits until the node is gone, or somebody has changed it.
func (c *Claim) await(ctx context.Context, s *framework.Session) error {
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

// take creates the node and hands out the lease. It has entered the desk, which is left when the node is
// gone or was not created.
func (c *Claim) take(ctx context.Context, d *desk) (*Lease, error) {
	node, err := c.create(ctx, d)
	if err != nil {
		return nil, err
	}
	lease := &Lease{path: c.line.name, kind: claimKind, node: node.Path, fence: node.fence, token: node.Zxid, session: d.s,
		key: heldKey{c.line.client, c.line.path}, back: func(early bool) returned { return d.vacate(early, node) }}
	if err := lease.holds(ctx, node.Path, node.fence); err != nil {
		d.vacate(false, node)
		return nil, err
	}
	go endWith(lease.hold, node.Created)
	return lease.start(c.line.maxHold), nil
}

// endWith ends a hold when its node is gone or another one: a proof of life would find a node of that name.
func endWith(h *framework.Hold, node framework.Created) {
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

// claimed is the node of a claim, and the fence that was created and will be deleted with it.
type claimed struct {
	framework.Created
	fence string
}

// create creates the node and its fence. The desk stays entered until the outcome is known, even if ctx ends before.
func (c *Claim) create(ctx context.Context, d *desk) (claimed, error) {
	if ctx.Err() != nil {
		d.leave()
		return claimed{}, framework.Ended(ctx)
	}
	dir, name := framework.Split(c.line.path)
	fence := framework.Join(dir, framework.ProtectedPrefix+uuid.NewString()+"-"+name+"-hold")
	node := framework.Together{Dir: dir, Name: name, Plain: true, Data: c.line.describe(ctx), Count: 1, Mode: framework.Ephemeral,
		With: []framework.Op{framework.CreateOp(fence, nil, framework.Ephemeral)}}
	type outcome struct {
		nodes []framework.Created
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		nodes, err := d.s.CreateTogether(context.WithoutCancel(ctx), node) // ends with the session
		done <- outcome{nodes, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, framework.ErrNodeExists) {
			o.err = ErrNotAcquired
		}
		if o.err != nil {
			d.leave()
			return claimed{}, o.err
		}
		return claimed{o.nodes[0], fence}, nil
	case <-ctx.Done():
		go func() { // nobody waits for the outcome any more
			if o := <-done; o.err == nil {
				d.vacate(false, claimed{o.nodes[0], fence})
			} else {
				d.leave()
			}
		}()
		return claimed{}, framework.Ended(ctx)
	}
}
