package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/locks"
)

// Mutex is an exclusive lock. It excludes the readers and the writer of an RWLock of the same name,
// too. Make one for a name and share it: its waiters in one process share a subscription.
type Mutex struct {
	lock *lock
	mode *mode
}

var _ locks.Locker = (*Mutex)(nil)

// NewMutex returns the mutex of a name, which is its key in Redis. It has up to 1,024 bytes, all
// characters can be printed, and none is a brace.
func NewMutex(client redis.UniversalClient, name string, opts ...Option) *Mutex {
	m := &Mutex{lock: newLock(client, name, "mutex", opts), mode: exclusive}
	if m.lock.opts.inOrder {
		m.mode = inOrder
	}
	return m
}

// Path is the mutex's name.
func (m *Mutex) Path() string { return m.lock.name }

// Validate returns what is wrong with the arguments of NewMutex, as every call does, or nil. It
// sends no request.
func (m *Mutex) Validate() error { return m.lock.err }

// Lock waits until the lock is granted. Its error is that of ctx when that ended the wait.
// Otherwise it wraps locks.ErrHeld, ErrExpired, framework.ErrForeign,
// framework.ErrInvalid, or is that of go-redis: the first attempt fails when the server cannot be
// reached. While it waits, it repeats failed attempts until ctx ends. Nothing stays behind: what it
// may have is given back in the background. Only a request that was lost for so long that go-redis
// has given it up, and that arrives on its old connection after all, has the lock until its expiry.
func (m *Mutex) Lock(ctx context.Context) (*locks.Lease, error) { return m.lock.lock(ctx, m.mode) }

// TryLock acquires the lock at once, or returns an error that wraps locks.ErrNotAcquired. Its other
// errors are those of Lock.
func (m *Mutex) TryLock(ctx context.Context) (*locks.Lease, error) { return m.lock.try(ctx, m.mode) }
