package locks

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/lifetime"
)

// Lease is what every grant hands back. It is immutable but for its end.
//
// Guarantee: Context is done before the servers can grant the same thing to anybody else, as long as
// this process is scheduled (see package framework). Not guaranteed: that a process which was stopped
// notices in time. Pass Token to what the lock protects, and Guard to ZooKeeper transactions.
type Lease struct {
	path    string
	kind    Kind
	node    string
	nodes   []string // all of them, if there are several
	fence   string   // the node that guards check, if it is not the lease's own
	parts   []*Lease // of a multi-lock
	token   int64
	turn    int64
	session *framework.Session
	key     heldKey            // what is held; its contexts know the lease by this
	life    *lifetime.Lifetime // how long it stands
	hold    *framework.Hold    // of its own nodes; nil if they are another lease's
	within  *Lease             // whose nodes these are, or nil
	guarded atomic.Bool        // the servers have to refuse what follows its end

	contender *contender                       // of a line's lease
	back      func(early bool) releaseProgress // gives back what was granted; early asks for returned.written

	mu      sync.Mutex
	ended   bool
	given   releaseProgress
	limit   *time.Timer // of WithMaxHold, or nil
	expires time.Time   // when that ends it
	unwatch func() bool
	revoked chan struct{}
}

// releaseProgress is the way of what was given back.
type releaseProgress struct {
	// written is closed when the request is in the connection's queue; nil if nobody is to wait for that.
	written <-chan struct{}
	// gone is closed when the servers have agreed, or the session has ended.
	gone <-chan struct{}
	// after is called by a Release that has waited for gone; may be nil.
	after func()
}

// Context is done when the lease has ended; its cause wraps ErrReleased, ErrMaxHold, framework.ErrSessionLost,
// framework.ErrNodeGone or framework.ErrClosed. It carries the values of the context that the lease
// was asked for with, but not its end. Asked for its error, it reads the clock as Err does.
func (l *Lease) Context() context.Context { return l.life.Context() }

// Token is the fencing token: it rises with every exclusive grant on the path. What the lock protects
// should remember the highest token that it has seen and refuse lower ones. Of a semaphore or a claim it
// tells grants apart, but is no fence.
func (l *Lease) Token() int64 { return l.token }

// Turn is 0 but under WithLocalHandoff, where the leases of one slice share a token: compare token and turn
// as a pair.
func (l *Lease) Turn() int64 { return l.turn }

// Path is the lock's path.
func (l *Lease) Path() string { return l.path }

// Node is the path of the lease's own node, the first one if it has several.
func (l *Lease) Node() string { return l.node }

// Session is the number of the session that the lease belongs to.
func (l *Lease) Session() int64 { return l.session.ID() }

// Err is nil while the lease stands, else why it ended. It reads the clock, so that it is right at
// once in a process that was stopped and continued.
func (l *Lease) Err() error { return l.life.Err() }

// Lifetime is how long the lease stands, for what lies within it. End the lease itself, with Release.
func (l *Lease) Lifetime() *lifetime.Lifetime { return l.life }

// Remaining is the time until the lease ends unless the session's life is proven again before: what a
// holder has left to stop in when its connection is gone, and no more than WithMaxHold leaves. It is never
// negative.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	left := l.session.LeaseRemaining()
	l.mu.Lock()
	expires := l.expires
	l.mu.Unlock()
	if !expires.IsZero() {
		left = min(left, max(0, time.Until(expires)))
	}
	if l.within != nil {
		left = min(left, l.within.Remaining())
	}
	for _, p := range l.parts {
		left = min(left, p.Remaining())
	}
	return left
}

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the lease
// stands: it is refused before it is sent once the lease has ended here, and by the servers once its
// node is gone there. Of several nodes it names the first; they live with one session, unless a
// multi-lock's parts belong to several clients. See Guards.
func (l *Lease) Guard() framework.Op {
	if len(l.parts) > 0 {
		return l.parts[0].Guard().When(l.Err)
	}
	for lease := l; lease != nil; lease = lease.within {
		lease.guarded.Store(true)
	}
	return framework.CheckOp(cmp.Or(l.fence, l.node), framework.AnyVersion).When(l.Err)
}

// Guards is Guard for each of the lease's nodes: also refused when somebody has deleted one of them.
func (l *Lease) Guards() []framework.Op {
	var ops []framework.Op
	l.forEachNode(func(part *Lease, node string) {
		guard := part.Guard().When(l.Err)
		ops = append(ops, framework.CheckOp(node, framework.AnyVersion).When(l.Err))
		if part.fence != "" {
			ops = append(ops, guard)
		}
	})
	return ops
}

// forEachNode calls f with all nodes, and the lease that each belongs to.
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

// Release ends the lease's context, then deletes its node. It waits for the deletion until ctx ends;
// after that it is finished in the background, until the node is gone or the session has ended, and
// Client.Close waits for it. The error is nil in either case. Releasing again is harmless.
func (l *Lease) Release(ctx context.Context) error {
	l.endOnce(ErrReleased)
	select {
	case <-l.given.gone:
		if l.given.after != nil {
			l.given.after()
		}
	case <-l.given.written:
	case <-ctx.Done():
	}
	return nil
}

// endOnce ends the lease and gives back what was granted; only the first call counts.
func (l *Lease) endOnce(cause error) { l.finishRelease(cause, false) }

func (l *Lease) finishRelease(cause error, early bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if l.unwatch != nil {
		l.unwatch()
	}
	if l.limit != nil {
		l.limit.Stop()
	}
	if l.hold != nil {
		l.hold.End(cause)
	} else {
		l.life.End(cause)
	}
	l.given = l.back(early)
}

// standWithHold makes the lease stand for as long as a hold on its nodes.
func (l *Lease) standWithHold(ctx context.Context, nodes ...string) error {
	h, err := l.session.Primitives().Hold(leaseContext{callerContext(ctx), l}, nodes...)
	if err != nil {
		return err
	}
	l.hold, l.life = h, h.Lifetime()
	return nil
}

// startTimers makes the lease end by itself: after its greatest length, and when its lifetime was ended by
// somebody else, so that who waits behind it on this session need not wait for its release.
func (l *Lease) startTimers(maxHold time.Duration) *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unwatch = context.AfterFunc(l.Context(), func() { l.endOnce(nil) })
	if maxHold > 0 && !l.waitsForMulti(maxHold) {
		l.limitLength(maxHold)
	}
	return l
}

// limitLength ends the lease after its greatest length, which begins now. l.mu is held.
func (l *Lease) limitLength(maxHold time.Duration) {
	if l.ended {
		return
	}
	l.expires = time.Now().Add(maxHold)
	l.limit = time.AfterFunc(maxHold, func() { l.endOnce(ErrMaxHold) })
}

// waitsForMulti reports whether the lease is asked for by a multi-lock that has not got all of its locks yet: the greatest
// length of all then begins with the last of them.
func (l *Lease) waitsForMulti(maxHold time.Duration) bool {
	g, ok := l.Context().Value(multiAcquireKey{}).(*multiAcquire)
	return ok && g.onOver(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.limitLength(maxHold)
	})
}

// heldKey is the key of the lease that a context belongs to, of one lock.
type heldKey struct {
	client *framework.Client
	path   string
}

// leaseContext has the values of the context that a lease was asked for with, and knows the lease.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c leaseContext) Value(key any) any {
	if key, ok := key.(heldKey); ok {
		if lease := c.lease.forLock(key); lease != nil {
			return lease
		}
	}
	return c.Context.Value(key)
}

// forLock returns the lease itself or the part of it that holds the lock of this key, or nil.
func (l *Lease) forLock(key heldKey) *Lease {
	if l.key == key {
		return l
	}
	for _, p := range l.parts {
		if found := p.forLock(key); found != nil {
			return found
		}
	}
	return nil
}

// callerKey is the key of the context that a lock was asked for with, in the context of the ask's own span.
type callerKey struct{}

// callerContext returns the context whose values a lease carries: the span of the ask has ended when the lease begins.
func callerContext(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// leaseFromContext returns the standing lease of the line's lock that ctx belongs to, or nil.
func leaseFromContext(ctx context.Context, l *Line) *Lease {
	lease, _ := ctx.Value(heldKey{l.client, l.path}).(*Lease)
	if lease == nil || lease.Err() != nil {
		return nil
	}
	return lease
}

// acquireNested returns what may be had under a lease of the same lock.
func (l *Line) acquireNested(ctx context.Context, outer *Lease) (*Lease, error) {
	switch held := outer.kind; {
	case held == l.kind && l.reentry:
		return l.newNestedLease(ctx, outer), nil
	case held == WriteKind && l.kind == ReadKind:
		return l.downgrade(ctx, outer)
	case held == ReadKind && l.kind == WriteKind:
		return nil, ErrUpgrade
	}
	return nil, ErrHeld
}

// newNestedLease returns a lease on the node of another, which ends with it.
func (l *Line) newNestedLease(ctx context.Context, outer *Lease) *Lease {
	lease := &Lease{path: l.name, kind: l.kind, node: outer.node, token: outer.token, turn: outer.turn, session: outer.session,
		key: outer.key, within: outer, contender: outer.contender, back: releaseNothing}
	lease.life = outer.life.Child(leaseContext{callerContext(ctx), lease})
	return lease.startTimers(l.maxHold)
}

// releaseNothing is the way back of a lease whose node is another's.
func releaseNothing(bool) releaseProgress { return releaseProgress{gone: closedChannel} }

// Locker is what all kinds of locks are, in one of their forms.
type Locker interface {
	// Path is where the lock is.
	Path() string
	// Lock waits until the lock is granted, or returns the error of ctx or of a refusal.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock is granted the lock at once or returns an error that wraps ErrNotAcquired.
	TryLock(ctx context.Context) (*Lease, error)
}

// Do runs f while holding the lock, and releases it whatever happens, a panic included. f gets the lease's
// context, which ends with the lease and with ctx, and must return soon after. Do waits for the release until ctx
// ends; the rest is done in the background, as Release does. The error is that of
// the ask or of f. If the lease has ended before f, the error wraps the cause too, even if f returned
// nil: what f did last was not protected.
func Do(ctx context.Context, locker Locker, f func(ctx context.Context, lease *Lease) error) error {
	lease, err := locker.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(ctx) }() // has no error
	inside := lease.life.Child(lease.Context())
	defer inside.End(context.Canceled)
	stop := context.AfterFunc(ctx, func() { inside.End(context.Cause(ctx)) })
	defer stop()
	err = f(inside.Context(), lease)
	if lost := lease.Err(); lost != nil && !errors.Is(err, lost) {
		return errors.Join(err, lost)
	}
	return err
}
