package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// lock is what all kinds of locks have in common: their path and options, and how a lease is acquired and released.
type lock struct {
	client *framework.Client
	path   string
	kind   kind
	opts   options
	line   *waitline.Line // nil for a claim
	key    any            // finds a lease of this lock in its contexts; nil: leases are independent of each other
	tel    *waitline.Telemetry
	err    error // of the arguments; every call returns it
}

// newLock returns a lock without a line.
func newLock(client *framework.Client, path string, k kind, opts options, err error) lock {
	l := lock{client: client, path: path, kind: k, opts: opts}
	if l.err = waitline.CheckPath(client, path); l.err != nil {
		return l
	}
	l.err = err
	l.key = waitline.HeldKey(client, path)
	l.tel = waitline.NewTelemetry(client, path, string(k))
	return l
}

// newLineLock returns a lock with a line at its path.
func newLineLock(client *framework.Client, path string, k kind, names waitline.Kind, opts options, err error) lock {
	l := newLock(client, path, k, opts, err)
	l.line = waitline.New(path, waitline.Filter{Kind: names, Kazoo: opts.kazoo}, opts.onWait)
	return l
}

// wait waits in line until the lock is granted.
func (l *lock) wait(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "acquire", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		c, err := l.line.Wait(ctx, s, l.data(ctx))
		if err != nil {
			return nil, err
		}
		return l.newLeaseInLine(ctx, c, c.Node().Zxid)
	})
}

// try is granted the lock at once or returns an error that wraps ErrNotAcquired.
func (l *lock) try(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "try", func(ctx context.Context, s *framework.Session) (*Lease, error) {
		c, err := l.line.Try(ctx, s, l.data(ctx))
		if err != nil {
			return nil, err
		}
		return l.newLeaseInLine(ctx, c, c.Node().Zxid)
	})
}

// acquire traces and measures the acquisition of a lease. Under a lease of the same lock, it returns a nested lease or refuses. Otherwise
// it calls grant on session after session.
func (l *lock) acquire(ctx context.Context, op string, grant func(context.Context, *framework.Session) (*Lease, error)) (lease *Lease, err error) {
	if l.err != nil {
		return nil, framework.Wrap(op, l.path, l.err)
	}
	ctx, end := l.tel.StartWait(ctx, op)
	defer func() {
		var token int64
		if lease != nil {
			token = lease.token
		}
		end(token, err)
	}()
	if outer := l.holderOf(ctx); outer != nil {
		lease, err = l.acquireWithin(ctx, outer)
	} else {
		err = recipe.OnSession(ctx, l.client, func(s *framework.Session) (err error) {
			lease, err = grant(ctx, s)
			return err
		})
	}
	return lease, framework.Wrap(op, l.path, err)
}

// holderOf returns the lease of this lock that ctx belongs to, or a term of an election at its path; or nil.
func (l *lock) holderOf(ctx context.Context) waitline.Holder {
	if l.key == nil {
		return nil
	}
	return waitline.HolderOf(ctx, l.key)
}

// acquireWithin returns what may be had under a lease of the same lock.
func (l *lock) acquireWithin(ctx context.Context, holder waitline.Holder) (*Lease, error) {
	outer, ok := holder.(*Lease)
	switch {
	case !ok:
		return nil, ErrHeld
	case outer.kind == l.kind && l.opts.reentry:
		return l.newNestedLease(ctx, outer), nil
	case outer.kind == writeKind && l.kind == readKind:
		return l.downgrade(ctx, outer)
	case outer.kind == readKind && l.kind == writeKind:
		return nil, ErrUpgrade
	}
	return nil, ErrHeld
}

// newNestedLease returns a lease on the node of another one, which ends with that one.
func (l *lock) newNestedLease(ctx context.Context, outer *Lease) *Lease {
	lease := &Lease{client: l.client, path: l.path, kind: l.kind, node: outer.node, token: outer.token, turn: outer.turn, session: outer.session,
		key: outer.key, contender: outer.contender, giveBack: giveBackNothing}
	lease.standWithin(ctx, outer)
	return lease.watchEnd(l.opts.maxHold)
}

// giveBackNothing is the giveBack of a lease on another lease's node.
func giveBackNothing(bool) releaseProgress { return releaseProgress{gone: closedChannel} }

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// downgrade returns a read lease with the number and the token of a write lease. The writer's guard protects the create.
func (l *lock) downgrade(ctx context.Context, writer *Lease) (*Lease, error) {
	c, err := l.line.Downgrade(ctx, writer.contender, l.data(ctx), writer.Guard())
	if errors.Is(err, waitline.ErrPlaceLost) {
		return nil, ErrReleased
	}
	if err != nil {
		return nil, err
	}
	return l.newLeaseInLine(ctx, c, writer.token)
}

// newLeaseInLine returns the lease of a contender that is granted. It fails when the session has ended, and the contender leaves then.
func (l *lock) newLeaseInLine(ctx context.Context, c *waitline.Contender, token int64) (*Lease, error) {
	lease := &Lease{client: l.client, path: l.path, kind: l.kind, node: c.Node().Path, token: token, session: c.Session(), key: l.key, contender: c}
	lease.giveBack = func(written bool) releaseProgress {
		p, deletion := l.deleteInBackground(written, c.Leave)
		p.afterGone = func() { c.RecordRelease(deletion.Zxid()) }
		return p
	}
	if err := lease.holdNodes(ctx, lease.node); err != nil {
		c.Leave(nil)
		return nil, err
	}
	return lease.watchEnd(l.opts.maxHold), nil
}

// deleteInBackground starts a deletion, and returns what a Release waits for. start calls queued, unless that is nil, when the deletion
// is in the connection's queue.
func (l *lock) deleteInBackground(written bool, start func(queued func()) *framework.Discarded) (releaseProgress, *framework.Discarded) {
	if !l.opts.asyncRelease && !written {
		d := start(nil)
		return releaseProgress{gone: d.Done()}, d
	}
	queued := make(chan struct{})
	d := start(func() { close(queued) })
	return releaseProgress{written: queued, gone: d.Done()}, d
}

// data is what a contender of this lock writes into its node.
func (l *lock) data(ctx context.Context) []byte {
	if l.opts.data != nil {
		return l.opts.data
	}
	return encodeOwner(ctx, l.client)
}
