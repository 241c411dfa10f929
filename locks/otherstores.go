package locks

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cleanup"
	"github.com/lockstep-go/lockstep/internal/lockstore"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

func init() { lockstore.OfLocks = otherStores{} }

// otherStores grants leases for the locks of other stores.
type otherStores struct{}

func (otherStores) NewLease(ctx context.Context, g lockstore.Grant) any {
	lease := &Lease{path: g.Path, token: g.Token, key: g.Key}
	hold := g.Begin(lease.withValues(ctx))
	lease.own, lease.otherStore, lease.life = hold, hold, hold.Lifetime()
	return lease.watchEnd(g.MaxHold)
}

func (otherStores) Held(ctx context.Context, key any) any {
	if lease, ok := waitline.HolderOf(ctx, key).(*Lease); ok {
		return lease
	}
	return nil
}

func (otherStores) Nested(ctx context.Context, of any, maxHold time.Duration) any {
	outer := of.(*Lease)
	lease := &Lease{path: outer.path, token: outer.token, key: outer.key, otherStore: outer.otherStore}
	lease.standWithin(ctx, outer)
	return lease.watchEnd(maxHold)
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
