package locks

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/internal/lockstore"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

func init() { lockstore.OfLocks = otherStores{} }

// otherStores grants leases for the locks of other stores.
type otherStores struct{}

func (otherStores) NewLease(ctx context.Context, g lockstore.Grant) any {
	lease := &Lease{path: g.Path, token: g.Token, key: g.Key, measures: g.Measures}
	hold := g.Begin(leaseContext{ctx, lease})
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
