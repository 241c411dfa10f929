// Package lockstore lets locks on another store than ZooKeeper grant leases of package locks.
package lockstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// Grant is what another store has granted.
type Grant struct {
	// Path and Token are those of the lease.
	Path  string
	Token int64
	// Key is the key of the lease in its own context; see Locks.Held.
	Key any
	// MaxHold ends the lease with locks.ErrMaxHold, unless it is 0.
	MaxHold time.Duration
	// Measures measures the hold.
	Measures waitline.HoldMeasurement
	// Begin begins the hold. The hold's context carries the values of values.
	Begin func(values context.Context) Hold
}

// Hold is the hold on a lock.
type Hold interface {
	primitives.Hold
	// Release ends the hold with a cause, unless the hold has ended already, and begins to give the
	// lock back. It calls queued, unless that is nil. Only the first call counts. Send goes on.
	Release(cause error, queued func()) primitives.Discarded
	// Send sends, once, what Release has begun: in the caller's goroutine, which waits for an
	// answer then, or in another one.
	Send(inCaller bool)
	// Remaining is the time until the hold ends, unless a later proof of life extends it.
	Remaining() time.Duration
	// CleanupTimeout bounds the wait for a release, as framework.Config.CleanupTimeout does.
	CleanupTimeout() time.Duration
	// Logger is the log of what no caller learns.
	Logger() *slog.Logger
	// GuardError is the error of a transaction with the lease's guard: the store has none.
	GuardError() error
}

// Locks is what package locks does for the locks of other stores. Its leases are of the type
// *locks.Lease, which this package cannot name: locks imports it.
type Locks interface {
	// NewLease returns the lease of a grant. The lease's context carries the values of ctx.
	NewLease(ctx context.Context, g Grant) (lease any)
	// Held returns the lease with this key whose context ctx is or descends from, or nil.
	Held(ctx context.Context, key any) (lease any)
	// Nested returns a lease within another one, which ends with that one at the latest, and whose
	// release gives nothing back.
	Nested(ctx context.Context, outer any, maxHold time.Duration) (lease any)
}

// OfLocks is package locks' implementation, which that package sets when it is initialized.
var OfLocks Locks
