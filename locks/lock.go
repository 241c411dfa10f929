package locks

import (
	"context"
	"errors"
	"log/slog"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// commonLock is what all kinds of locks have in common: their path and options, and how a lease is
// acquired and released.
type commonLock struct {
	client *framework.Client
	path   string
	kind   telemetryKind
	opts   lockOptions
	line   *waitline.Line // nil for a claim
	key    any            // finds a lease of this lock in its contexts; nil: leases are independent of each other
	tel    *waitline.Telemetry
	err    error // of the arguments; every call returns it
}

// newLock returns a lock without a line.
func newLock(client *framework.Client, path string, k telemetryKind, opts lockOptions, err error) commonLock {
	l := commonLock{client: client, path: path, kind: k, opts: opts}
	if l.err = recipe.CheckClientAndPath(client, path, "a lock"); l.err != nil {
		return l
	}
	l.err = err
	l.key = waitline.HeldKey(client, path)
	l.tel = waitline.NewTelemetry(client, path, string(k))
	return l
}

// withLine returns the lock with a line at its path. Its contenders have names of a kind.
func (l commonLock) withLine(names waitline.Kind) commonLock {
	l.line = waitline.New(l.path, waitline.Filter{Kind: names, Kazoo: l.opts.kazoo}, l.opts.onWait)
	return l
}

// grantFunc acquires a lease on one session, for a call that waits.
type grantFunc func(ctx context.Context, s *framework.Session, w *waitline.Wait) (*Lease, error)

// waitUntilGranted waits in line until the lock is granted.
func (l *commonLock) waitUntilGranted(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "acquire", 0, l.waitOnSession)
}

// waitOnSession is a grantFunc that waits in line.
func (l *commonLock) waitOnSession(ctx context.Context, s *framework.Session, w *waitline.Wait) (*Lease, error) {
	c, err := l.line.Wait(ctx, s, l.contenderData(ctx), w)
	if err != nil {
		return nil, err
	}
	return l.newLeaseInLine(w.Caller, c, c.Node().Zxid)
}

// tryAcquire acquires the lock at once, or returns an error that wraps ErrNotAcquired.
func (l *commonLock) tryAcquire(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "try", 0, func(ctx context.Context, s *framework.Session, w *waitline.Wait) (*Lease, error) {
		c, err := l.line.Try(ctx, s, l.contenderData(ctx))
		if err != nil {
			return nil, err
		}
		return l.newLeaseInLine(w.Caller, c, c.Node().Zxid)
	})
}

// acquire traces and measures the acquisition of a lease. Under a lease of the same lock, it
// returns a nested lease or refuses. Otherwise it calls grant on session after session. permits is
// how many of a semaphore it wants.
func (l *commonLock) acquire(ctx context.Context, op string, permits int,
	grant grantFunc) (lease *Lease, err error) {
	if l.err != nil {
		return nil, failure.Wrap(op, l.path, l.err)
	}
	ctx, w := l.tel.StartWait(ctx, op)
	defer func() {
		var token int64
		if lease != nil {
			token = lease.token
		}
		w.End(token, err)
	}()
	if outer := l.holderOf(ctx); outer != nil {
		lease, err = l.acquireWithin(ctx, w.Caller, outer)
	} else {
		lease, err = l.acquireOnSession(ctx, w, op, permits, grant)
	}
	return lease, failure.Wrap(op, l.path, err)
}

// acquireOnSession calls grant on session after session. Unless it only tries, it searches for
// deadlocks meanwhile if the caller holds locks.
func (l *commonLock) acquireOnSession(ctx context.Context, w *waitline.Wait, op string, permits int,
	grant grantFunc) (lease *Lease, err error) {
	if q := l.newRequest(ctx, permits); q != nil && op != "try" {
		if l.line == nil { // a claim has no line
			q.Waits = func() (waitgraph.LineNode, bool) { return waitgraph.LineNode{}, true }
		} else {
			var own waitingNode
			w.Queued = own.set
			q.Waits = func() (waitgraph.LineNode, bool) { return own.lineNode(l.client.Config().Root) }
		}
		ctx = q.Begin(ctx)
		defer func() { err = q.End(lease != nil, err) }()
	}
	err = recipe.OnSession(ctx, l.client, func(s *framework.Session) (err error) {
		lease, err = grant(ctx, s, w)
		return err
	})
	return lease, err
}

// newRequest returns the lock request of a caller that holds locks, or nil. The caller sets Waits.
func (l *commonLock) newRequest(ctx context.Context, permits int) *waitgraph.Request {
	held := heldLocksOf(ctx)
	if held == nil || l.opts.deadlock == DeadlockOff {
		return nil
	}
	return &waitgraph.Request{Client: l.client, Lock: l.path, Permits: permits, Held: held.listHeld,
		ReportOnly: l.opts.deadlock == DeadlockReport, Report: l.reportDeadlock}
}

// reportDeadlock counts and logs a deadlock whose victim is a request for this lock. It returns the
// error with which the request fails, unless it only reports.
func (l *commonLock) reportDeadlock(ctx context.Context, cycle []waitgraph.Waiter) error {
	found := &DeadlockError{Cycle: deadlockedRequests(cycle)}
	broken, level := true, slog.LevelInfo // the error is returned, too
	if l.opts.deadlock == DeadlockReport {
		broken, level = false, slog.LevelWarn
	}
	l.tel.RecordDeadlock(ctx, found.Error(), broken)
	l.client.Logger().Log(ctx, level, "found a deadlock", "path", l.path, "broken", broken, "deadlock", found)
	return found
}

// holderOf returns the lease of this lock that ctx belongs to, or a term of an election at its
// path; or nil.
func (l *commonLock) holderOf(ctx context.Context) waitline.Holder {
	if l.key == nil {
		return nil
	}
	return waitline.HolderOf(ctx, l.key)
}

// acquireWithin returns what may be had under a lease of the same lock.
func (l *commonLock) acquireWithin(ctx, caller context.Context, holder waitline.Holder) (*Lease, error) {
	outer, ok := holder.(*Lease)
	switch {
	case !ok:
		return nil, ErrHeld
	case outer.kind == l.kind && l.opts.reentry:
		return l.newNestedLease(caller, outer), nil
	case outer.kind == writeKind && l.kind == readKind:
		return l.downgrade(ctx, caller, outer)
	case outer.kind == readKind && l.kind == writeKind:
		return nil, errUpgrade
	}
	return nil, ErrHeld
}

// newNestedLease returns a lease on the node of another one, which ends with that one.
func (l *commonLock) newNestedLease(caller context.Context, outer *Lease) *Lease {
	lease := &Lease{client: l.client, path: l.path, kind: l.kind, node: outer.node, token: outer.token,
		turn: outer.turn, session: outer.session, key: outer.key, grant: outer.grant}
	lease.standWithin(caller, outer)
	return lease.watchEnd(l.opts.maxHold)
}

// downgrade returns a read lease with the number and the token of a write lease. The writer's guard
// protects the create.
func (l *commonLock) downgrade(ctx, caller context.Context, writer *Lease) (*Lease, error) {
	c, err := l.line.Downgrade(ctx, writer.grant, l.contenderData(ctx), writer.Guard())
	if errors.Is(err, waitline.ErrPlaceLost) {
		return nil, ErrReleased
	}
	if err != nil {
		return nil, err
	}
	return l.newLeaseInLine(caller, c, writer.token)
}

// newLeaseInLine returns the lease of a contender that is granted. It fails when the session has
// ended, and the contender leaves then.
func (l *commonLock) newLeaseInLine(caller context.Context, c *waitline.Contender, token int64) (*Lease, error) {
	lease := &Lease{client: l.client, path: l.path, kind: l.kind, node: c.Node().Path, token: token,
		session: c.Session(), key: l.key}
	grant, err := c.Hold(leaseContext{caller, lease}, nil)
	if err != nil {
		return nil, err
	}
	lease.grant = grant
	return l.begin(lease, grant), nil
}

// begin makes a lease stand for as long as the hold on its own nodes, which it measures.
func (l *commonLock) begin(lease *Lease, own ownNodes) *Lease {
	lease.own, lease.asyncRelease = own, l.opts.asyncRelease
	lease.life, lease.measures = own.Lifetime(), l.tel.StartHold()
	return lease.watchEnd(l.opts.maxHold)
}

// contenderData returns what a contender of this lock writes into its node.
func (l *commonLock) contenderData(ctx context.Context) []byte {
	if l.opts.data != nil {
		return l.opts.data
	}
	return encodeOwner(ctx, l.client)
}
