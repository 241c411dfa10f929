package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// Mutex is an exclusive and fair lock at a path of its own. Its layout is that of Apache Curator's
// InterProcessMutex, shared by Go and Java services:
//
//	<path>                     container
//	<path>/_c_<uuid>-lock-#    ephemeral sequential, one for each holder or waiter
//
// Several mutexes may be made for one path, and each may be used by many goroutines at once. It is
// re-entrant with WithReentry only.
type Mutex struct {
	lock    commonLock
	handoff *localHandoff // of WithLocalHandoff, or nil
}

// NewMutex returns a mutex at path.
func NewMutex(client *framework.Client, path string, opts ...MutexOption) *Mutex {
	all, err := optionsOf(opts, MutexOption.applyToMutex)
	m := &Mutex{lock: newLock(client, path, mutexKind, all, err).withLine(waitline.Mutex)}
	if all.handoff > 0 {
		m.handoff = &localHandoff{lock: &m.lock}
	}
	return m
}

// Path is the mutex's path.
func (m *Mutex) Path() string { return m.lock.path }

// Validate returns what is wrong with the arguments of NewMutex, as every call does, or nil. It
// sends no request.
func (m *Mutex) Validate() error { return m.lock.err }

// Lock waits in line until the lock is granted. A suspended connection keeps the waiter's place;
// when the session is lost, the waiter joins again at the end. Its error is that of ctx when that
// ended the wait. Otherwise it wraps ErrHeld, ErrDeadlock, framework.ErrForeign,
// framework.ErrClosed, framework.ErrAuthFailed, framework.ErrInvalid, or a refusal of the servers
// or of the client, such as framework.ErrNoAuth or framework.ErrTooLarge. No node stays behind
// then: Lock deletes its node, if need be in the background.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	if m.handoff != nil && m.lock.holderOf(ctx) == nil {
		return m.handoff.waitForTurn(ctx)
	}
	return m.lock.waitUntilGranted(ctx)
}

// TryLock acquires the lock at once or returns an error that wraps ErrNotAcquired. It waits for a
// session and for the servers' answers until ctx ends. A lock whose Release has returned, and for
// which nobody waits, is free, also if this client's server lags: before TryLock fails, it asks the
// leader once, which costs a round trip and no write. Its other errors are those of Lock.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	if m.handoff != nil && m.lock.holderOf(ctx) == nil {
		return m.handoff.tryTurn(ctx)
	}
	return m.lock.tryAcquire(ctx)
}
