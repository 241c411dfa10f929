package locks

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cleanup"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/lockstore"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// telemetryKind is what telemetry calls a lock, or one half of a read-write lock.
type telemetryKind string

const (
	mutexKind     telemetryKind = "mutex"
	readKind      telemetryKind = "read"
	writeKind     telemetryKind = "write"
	semaphoreKind telemetryKind = "semaphore"
	claimKind     telemetryKind = "claim"
)

// Lease is what a lock grants.
//
// Guarantee: Context is done before the servers can grant the same lock again, as long as this
// process is scheduled (see package framework). Not guaranteed: that a paused process notices the
// end in time, nor anything after a failover of Redis (see package redislock). Pass Token to what
// the lock protects, and Guard to ZooKeeper transactions.
type Lease struct {
	client    *framework.Client // nil on another store
	path      string
	kind      telemetryKind
	node      string
	nodes     []string // all nodes, if there are several
	guardNode string   // of a claim: the node that guards check instead of the lease's own
	parts     []*Lease // of a MultiLock
	token     int64
	turn      int64
	session   *framework.Session // nil on another store
	key       any                // finds the lease in its contexts; nil: it cannot be found

	life       *lifetime.Lifetime       // how long the lease stands
	own        ownNodes                 // nil if the nodes belong to other leases
	otherStore lockstore.Hold           // of a lease on another store than ZooKeeper, else nil
	outer      *Lease                   // the lease that has the node, of a nested lease or a turn
	passer     turnPasser               // of a turn
	grant      *waitline.Grant          // of a lease in a line, and of leases within it
	measures   waitline.HoldMeasurement // measures the hold

	asyncRelease bool // WithAsyncRelease

	mu      sync.Mutex
	ended   bool          // endLease was called
	release leaseRelease  // once ended
	maxHold time.Duration // of WithMaxHold, or 0
	limit   *time.Timer   // ends the lease after maxHold; nil while that time is not limited
	expires time.Time     // when limit fires
	unwatch func() bool   // stops what watchEnd has begun; nil for a turn
	revoked chan struct{} // the channel of Revoked; nil before its first call
}

// ownNodes are a lease's own nodes, and the hold on them.
type ownNodes interface {
	primitives.Hold
	// Release ends the hold with a cause, unless the hold has ended already. Then it deletes the
	// nodes in the background. Once the deletion is in the connection's queue, it calls queued,
	// unless that is nil. If the session ends before, it does not call queued.
	Release(cause error, queued func()) primitives.Discarded
}

// turnPasser passes turns of a slice on.
type turnPasser interface {
	endTurn(turn *Lease, tellQueued bool) (release leaseRelease, ended *Lease)
}

// leaseRelease is the release of a lease.
type leaseRelease struct {
	deletion deletion
	// queued is closed when the deletion is in the connection's queue. It is nil if Release waits
	// for the end of the deletion.
	queued <-chan struct{}
}

// deletion is the deletion of a lease's nodes in the background.
type deletion interface {
	// Done is closed when the nodes are gone or the session has ended.
	Done() <-chan struct{}
	// Err tells why the servers have not confirmed that the nodes are gone. It is nil after their
	// confirmation, and while there is no answer.
	Err() error
}

// noDeletion is the deletion of a lease on another lease's node.
type noDeletion struct{}

func (noDeletion) Done() <-chan struct{} { return closedChannel }
func (noDeletion) Err() error            { return nil }

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Context is done when the lease has ended. Its cause wraps ErrReleased, ErrMaxHold,
// framework.ErrSessionLost, framework.ErrNodeGone or framework.ErrClosed; that of a lease of
// package redislock may wrap redislock.ErrExpired or ErrLost instead. It carries the values of the
// context of the call that acquired the lease, and does not end with that one. Its Err reads the
// clock, as the lease's does.
func (l *Lease) Context() context.Context { return l.life.Context() }

// Token is the fencing token: it rises with every exclusive grant on the path. What the lock
// protects should remember the highest token that it has seen and refuse lower ones. A nested lease
// has the token of its outer lease, a reader that was a writer that of the writer, and the turns of
// a slice share one: see Turn. The token of a semaphore or a claim tells grants apart, but is no
// fence.
func (l *Lease) Token() int64 { return l.token }

// Turn counts the leases of one slice, which share a token: compare token and turn as a pair. It is
// 0 without WithLocalHandoff.
func (l *Lease) Turn() int64 { return l.turn }

// Path is the lock's path.
func (l *Lease) Path() string { return l.path }

// Node is the path of the lease's own node, the first one if it has several. It is empty on another
// store than ZooKeeper.
func (l *Lease) Node() string { return l.node }

// Session is the number of the session that the lease belongs to, 0 of a lease on another store.
func (l *Lease) Session() framework.SessionID {
	if l.session == nil {
		return 0
	}
	return l.session.ID()
}

// Err is nil while the lease stands, else why it ended. It reads the clock, so it is right at once
// in a process that was paused.
func (l *Lease) Err() error { return l.life.Err() }

// Remaining is the time until the lease ends, unless a later proof of life extends the time. A
// holder without a connection has this time to stop in. WithMaxHold limits it, too. It is 0 once
// the lease has ended.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	left := l.remainingHold()
	l.mu.Lock()
	expires := l.expires
	l.mu.Unlock()
	if !expires.IsZero() {
		left = min(left, max(0, time.Until(expires)))
	}
	if l.outer != nil {
		left = min(left, l.outer.Remaining())
	}
	for _, p := range l.parts {
		left = min(left, p.Remaining())
	}
	return left
}

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the lease
// stands. After the lease's end, the client refuses to send the transaction. The servers refuse it
// once the lease's node is gone. Of several nodes, Guard checks the first: they live with one
// session, unless the parts of a MultiLock belong to several clients. See Guards. The parts of a
// MultiLock on another store than ZooKeeper are left out; if there is no other part, or the lease
// itself is on another store, the client refuses the transaction with that store's error
// (framework.ErrInvalid).
//
// A late transaction of this lease, on any client, never comes after one with the guard of the next
// lease. So a waiter of the same process is granted only when the node is gone, not as soon as its
// deletion is on its way.
func (l *Lease) Guard() framework.Op {
	if !l.isOnZooKeeper() {
		return l.refusedGuard()
	}
	if len(l.parts) > 0 {
		return primitives.When(firstOnZooKeeper(l.parts).Guard(), l.Err)
	}
	if l.grant != nil {
		l.grant.SetGuarded()
	}
	return primitives.When(framework.CheckOp(cmp.Or(l.guardNode, l.node), framework.AnyVersion), l.Err)
}

// Guards is Guard for each of the lease's nodes. The servers refuse the transaction when any of
// them is gone. The client refuses it if a part of a MultiLock is on another store than ZooKeeper.
func (l *Lease) Guards() []framework.Op {
	var ops []framework.Op
	l.forEachNode(func(part *Lease, node string) {
		if !part.isOnZooKeeper() {
			ops = append(ops, part.refusedGuard())
			return
		}
		guard := primitives.When(part.Guard(), l.Err)
		ops = append(ops, primitives.When(framework.CheckOp(node, framework.AnyVersion), l.Err))
		if part.guardNode != "" {
			ops = append(ops, guard)
		}
	})
	return ops
}

// forEachNode calls f with all nodes, and with the lease that each belongs to.
func (l *Lease) forEachNode(f func(part *Lease, node string)) {
	for _, p := range l.parts {
		p.forEachNode(f)
	}
	for _, node := range l.nodes {
		f(l, node)
	}
	if l.parts == nil && l.nodes == nil {
		f(l, l.node)
	}
}

// Release ends the lease's context, then deletes its nodes. It returns nil when the servers have
// confirmed that they are gone; else the error wraps framework.ErrUnconfirmed and the reason. It is
// a cleanup (framework.Client.CleanupContext): it also waits if ctx has ended. After that the
// deletion goes on in the background, until the nodes are gone or the session has ended, and
// Client.Close waits for the deletion. The lease is over in any case.
//
// A second call waits for the same deletion. With WithAsyncRelease, Release does not wait for the
// deletion's answer, and returns nil without it. The release of a nested lease deletes no node, nor
// does that of a turn which another turn of its slice follows.
func (l *Lease) Release(ctx context.Context) error {
	l.endAndSend(ErrReleased, false, ctx.Done() == nil)
	return failure.Wrap("release", l.path, l.release.wait(ctx, l.cleanupContext))
}

// wait waits until the nodes are gone, or until their deletion is in the connection's queue if that
// is enough.
func (r leaseRelease) wait(ctx context.Context,
	cleanupContext func(context.Context) (context.Context, context.CancelFunc)) error {
	select {
	case <-r.deletion.Done(): // as of most turns: a timer would cost more than the turn
	default:
		ctx, cancel := cleanupContext(ctx)
		defer cancel()
		select {
		case <-r.deletion.Done():
		case <-r.queued:
			return nil
		case <-ctx.Done():
			return failure.Unconfirmed(cmp.Or(r.deletion.Err(), failure.Ended(ctx)))
		}
	}
	return failure.Unconfirmed(r.deletion.Err())
}

// endLease ends the lease's context and then gives its nodes back. If tellQueued is true, l.release
// also tells when the deletion is in the connection's queue. Only the first call has an effect.
func (l *Lease) endLease(cause error, tellQueued bool) { l.endAndSend(cause, tellQueued, false) }

// endAndSend is endLease. If inCaller is true, another store may be asked in the caller's
// goroutine.
func (l *Lease) endAndSend(cause error, tellQueued, inCaller bool) {
	if ended := l.endUnmeasured(cause, tellQueued); ended != nil {
		if ended.otherStore != nil {
			ended.otherStore.Send(inCaller)
		}
		ended.measureEnd()
	}
}

// endUnmeasured is endLease without the measurement, which calls instruments of the user's.
// It returns the lease whose hold has ended, or nil: the caller calls its measureEnd when no mutex
// is locked.
func (l *Lease) endUnmeasured(cause error, tellQueued bool) (ended *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	if l.unwatch != nil {
		l.unwatch()
	}
	l.stopLimit()
	if l.own != nil {
		var queued func()
		if l.asyncRelease || tellQueued {
			inQueue := make(chan struct{})
			l.release.queued, queued = inQueue, func() { close(inQueue) }
		}
		l.release.deletion = l.own.Release(cause, queued)
		return l
	}
	l.life.End(cause)
	switch {
	case l.passer != nil:
		l.release, ended = l.passer.endTurn(l, tellQueued)
	case l.parts != nil:
		l.release.deletion = releaseInBackground(l.parts)
	default: // a nested lease
		l.release.deletion = noDeletion{}
	}
	return ended
}

// measureEnd measures the hold, which has ended.
func (l *Lease) measureEnd() { l.measures.End(l.life.Err(), ErrReleased, ErrMaxHold) }

// standWithin makes the lease end with another lease at the latest.
func (l *Lease) standWithin(caller context.Context, outer *Lease) {
	l.outer = outer
	l.life = outer.life.Child(leaseContext{caller, l})
}

// watchEnd gives the lease's nodes back when its context ends by other means than Release, so that
// local waiters need not wait for the Release. It also ends the lease after maxHold, unless that is
// 0. It returns the lease.
func (l *Lease) watchEnd(maxHold time.Duration) *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unwatch = context.AfterFunc(l.Context(), func() { l.endLease(nil, false) })
	l.maxHold = maxHold
	l.startLimit()
	return l
}

// startLimit begins the time of WithMaxHold. The caller holds mu.
func (l *Lease) startLimit() {
	l.stopLimit()
	if l.maxHold > 0 && !l.ended {
		l.expires = time.Now().Add(l.maxHold)
		l.limit = time.AfterFunc(l.maxHold, func() { l.endLease(ErrMaxHold, false) })
	}
}

// stopLimit stops the time of WithMaxHold. The caller holds mu.
func (l *Lease) stopLimit() {
	if l.limit != nil {
		l.limit.Stop()
		l.limit, l.expires = nil, time.Time{}
	}
}

// changeLimits calls change, which is startLimit or stopLimit, for the lease and its parts. For the
// first turn of a slice, whose call has acquired the node, it calls change for the node's lease.
func (l *Lease) changeLimits(change func(*Lease)) {
	if l.passer != nil && l.turn == 1 {
		l = l.outer
	}
	for _, p := range l.parts {
		p.changeLimits(change)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// leaseContext is the context whose values a lease's context carries: those of the context of the
// call that has acquired the lease, without the span of the call, and the lease for its key.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c leaseContext) Value(key any) any {
	if key == (heldLocksKey{}) {
		return &heldLocks{c.lease.standingNodes, heldLocksOf(c.Context)}
	}
	if lease := c.lease.findByKey(key); lease != nil {
		return lease
	}
	return c.Context.Value(key)
}

// standingNodes are the nodes that the lease holds, as long as it stands.
func (l *Lease) standingNodes() (all []waitgraph.Held) {
	l.forEachNode(func(part *Lease, node string) {
		if !part.isOnZooKeeper() || l.Err() != nil || part.Err() != nil {
			return
		}
		root, zxid := part.client.Config().Root, part.token
		if part.grant != nil { // a reader that was a writer has kept the writer's token
			zxid = part.grant.Node().Zxid
		}
		all = append(all, waitgraph.Held{Lock: waitgraph.WithRoot(root, part.path),
			Node: waitgraph.WithRoot(root, node),
			Zxid: zxid, Turn: part.turn})
	})
	return all
}

// findByKey returns the lease itself or its part that the key finds, or nil.
func (l *Lease) findByKey(key any) *Lease {
	if l.key != nil && l.key == key {
		return l
	}
	for _, p := range l.parts {
		if found := p.findByKey(key); found != nil {
			return found
		}
	}
	return nil
}

// isOnZooKeeper reports whether a node of ZooKeeper stands behind the lease.
func (l *Lease) isOnZooKeeper() bool { return l.client != nil }

// cleanupContext bounds the wait for the lease's release.
func (l *Lease) cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.isOnZooKeeper() {
		return l.client.CleanupContext(ctx)
	}
	return cleanup.Context(ctx, l.otherStore.CleanupTimeout())
}

// cleanupTimeout bounds the wait for the lease's release, also while its caller waits for others.
func (l *Lease) cleanupTimeout() time.Duration {
	if l.isOnZooKeeper() {
		return l.client.Config().CleanupTimeout
	}
	return l.otherStore.CleanupTimeout()
}

// logger is the log of what no caller learns.
func (l *Lease) logger() *slog.Logger {
	if l.isOnZooKeeper() {
		return l.client.Logger()
	}
	return l.otherStore.Logger()
}

// remainingHold is how long the hold behind the lease stands without a later proof of life.
func (l *Lease) remainingHold() time.Duration {
	if l.isOnZooKeeper() {
		return l.session.LeaseRemaining()
	}
	return l.otherStore.Remaining()
}

// refusedGuard is the guard of a lease on another store: the client refuses to send it.
func (l *Lease) refusedGuard() framework.Op {
	return primitives.When(framework.CheckOp("/", framework.AnyVersion), l.otherStore.GuardError)
}

// firstOnZooKeeper is the first of the leases that has a node, or else the first one.
func firstOnZooKeeper(parts []*Lease) *Lease {
	return parts[max(0, slices.IndexFunc(parts, (*Lease).isOnZooKeeper))]
}

// releaseInBackground releases the parts, last first, each as soon as the deletion of the one
// before is in the connection's queue. Only parts of one session wait for each other, so that a
// session without a connection does not delay others.
func releaseInBackground(parts []*Lease) partsDeletion {
	sessions := map[*framework.Session][]*Lease{}
	for _, p := range slices.Backward(parts) {
		sessions[p.session] = append(sessions[p.session], p)
	}
	var all sync.WaitGroup
	for _, ofSession := range sessions {
		all.Go(func() {
			for _, p := range ofSession {
				p.endLease(ErrReleased, true)
				select {
				case <-p.release.queued:
				case <-p.release.deletion.Done():
				}
			}
			for _, p := range ofSession {
				<-p.release.deletion.Done()
			}
		})
	}
	d := partsDeletion{parts, make(chan struct{})}
	go func() {
		defer close(d.done)
		all.Wait()
	}()
	return d
}

// partsDeletion is the deletion of the nodes of a MultiLock's parts.
type partsDeletion struct {
	parts []*Lease
	done  chan struct{}
}

func (d partsDeletion) Done() <-chan struct{} { return d.done }

// Err joins the errors of the parts whose release has begun.
func (d partsDeletion) Err() error {
	var errs []error
	for _, p := range d.parts {
		p.mu.Lock()
		of := p.release.deletion
		p.mu.Unlock()
		if of != nil {
			errs = append(errs, failure.Wrap("release", p.path, of.Err()))
		}
	}
	return errors.Join(errs...)
}
