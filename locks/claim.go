package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// Claim is the simplest exclusive lock: one ephemeral node, whose creator holds it.
//
//	<path>   ephemeral; its directory is a container
//
// Guarantee: one holder at a time. Not guaranteed: any order among those who wait, each of whom is woken by
// the holder's end; prefer a Mutex where many wait. The token tells grants apart and is no fence, since
// a late holder's node may have been created by somebody else.
type Claim struct{ line *Line }

// NewClaim returns a claim on path. Nothing is created before it is used. An argument that cannot be
// used makes every call return an error that says so.
func NewClaim(client *framework.Client, path string, opts ...Option) *Claim {
	l := NewLine(client, path, MutexKind, opts...)
	l.label = "claim"
	l.without(l.reentry, "WithReentry is for mutexes and read-write locks")
	l.without(l.queued != nil, "WithQueued is for locks with a line")
	l.kind = claimKind
	return &Claim{l}
}

// Path is the claim's node.
func (c *Claim) Path() string { return c.line.path }

// TryLock claims the path or returns an error that wraps ErrNotAcquired.
func (c *Claim) TryLock(ctx context.Context) (*Lease, error) {
	return c.line.ask(ctx, "try", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		d := deskOf(s, c.line)
		if !d.tryEnter() {
			return nil, ErrNotAcquired
		}
		return c.take(ctx, d)
	})
}

// Lock waits until the path could be claimed. Its errors are those of Mutex.Lock.
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
	_, _, w, err := s.WatchData(ctx, c.line.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
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
	lease := &Lease{path: c.line.name, kind: claimKind, node: node.Path, token: node.Zxid, session: d.s,
		back: d.vacate}
	h, err := d.s.Hold(context.WithValue(ctx, heldKey{c.line.client, c.line.path}, lease), node.Path)
	if err != nil {
		d.vacate(false)
		return nil, err
	}
	lease.tenure = h
	return lease.start(c.line.maxHold), nil
}

// create creates the node. The desk stays entered until the outcome is known, even if ctx ends before.
func (c *Claim) create(ctx context.Context, d *desk) (framework.Created, error) {
	dir, name := framework.Split(c.line.path)
	node := framework.Together{Dir: dir, Name: name, Plain: true, Data: c.line.describe(ctx), Count: 1, Mode: framework.Ephemeral}
	var created []framework.Created
	done := make(chan error, 1)
	go func() {
		var err error
		created, err = d.s.CreateTogether(d.s.Context(), node)
		done <- err
	}()
	select {
	case err := <-done:
		if errors.Is(err, framework.ErrNodeExists) {
			err = ErrNotAcquired
		}
		if err != nil {
			d.leave()
			return framework.Created{}, err
		}
		return created[0], nil
	case <-ctx.Done():
		go d.undo(done)
		return framework.Created{}, framework.Ended(ctx)
	}
}
