package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// Mutex is an exclusive lock, fair, at a path of its own. Its layout is that of Apache Curator's
// InterProcessMutex, so that a Go and a Java service can contend for it:
//
//	<path>                     container
//	<path>/_c_<uuid>-lock-#    ephemeral sequential, one for each holder or waiter
//
// It holds no state of its own: several may be made for one path, and each may be used by many
// goroutines at once. It is re-entrant only if asked to be; see WithReentry.
type Mutex struct{ line *Line }

// NewMutex returns a mutex at path. Nothing is created before it is used. An argument that cannot be
// used makes every call return an error that says so.
func NewMutex(client *framework.Client, path string, opts ...Option) *Mutex {
	return &Mutex{newLine(client, path, "", MutexKind, opts...)}
}

// Path is the mutex's path.
func (m *Mutex) Path() string { return m.line.path }

// Lock waits in line until the lock is granted. A suspended connection keeps the waiter's place; a lost
// session makes it queue again. Its error is that of ctx when that ended the wait, or wraps
// framework.ErrClosed, framework.ErrNoAuth, framework.ErrInvalidPath or ErrKindMixed; no node is left
// behind then.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if s := m.line.slice; s != nil && leaseFromContext(ctx, m.line) == nil {
		return s.waitForTurn(ctx)
	}
	return m.line.Acquire(ctx)
}

// TryLock is granted the lock at once or returns an error that wraps ErrNotAcquired. It waits for a
// session and for the servers' answers until ctx ends.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if s := m.line.slice; s != nil && leaseFromContext(ctx, m.line) == nil {
		return s.tryTurn(ctx)
	}
	return m.line.TryAcquire(ctx)
}

// Contenders lists the holder and the waiters in order.
func (m *Mutex) Contenders(ctx context.Context) ([]Contender, error) { return m.line.Contenders(ctx) }
