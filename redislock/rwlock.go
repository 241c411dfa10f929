package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/locks"
)

// RWLock is a lock with any number of readers or one writer. While a writer waits, no new readers
// are granted. A read lease has the token of the last writer.
type RWLock struct{ lock *lock }

var _ locks.Locker = (*RWLock)(nil)

// NewRWLock returns the read-write lock of a name; see NewMutex. WithArrivalOrder does not fit it.
func NewRWLock(client redis.UniversalClient, name string, opts ...Option) *RWLock {
	l := newLock(client, name, "write", opts)
	if l.err == nil && l.opts.inOrder {
		l.err = fmt.Errorf("%w: %w", errInvalid, errors.New("WithArrivalOrder: a read-write lock has no order"))
	}
	if l.err == nil {
		l.readTel = l.telemetry("read")
	}
	return &RWLock{l}
}

// Path is the lock's name.
func (l *RWLock) Path() string { return l.lock.name }

// Validate returns what is wrong with the arguments of NewRWLock, as every call does, or nil. It
// sends no request.
func (l *RWLock) Validate() error { return l.lock.err }

// Lock waits until the lock is granted for writing. Its errors are those of Mutex.Lock, and
// locks.ErrHeld with the context of a read lease.
func (l *RWLock) Lock(ctx context.Context) (*locks.Lease, error) { return l.lock.lock(ctx, exclusive) }

// TryLock acquires the lock for writing at once; see Mutex.TryLock.
func (l *RWLock) TryLock(ctx context.Context) (*locks.Lease, error) {
	return l.lock.try(ctx, exclusive)
}

// RLock waits until the lock is granted for reading.
func (l *RWLock) RLock(ctx context.Context) (*locks.Lease, error) { return l.lock.lock(ctx, shared) }

// TryRLock acquires the lock for reading at once.
func (l *RWLock) TryRLock(ctx context.Context) (*locks.Lease, error) { return l.lock.try(ctx, shared) }

// RLocker is the reading half.
func (l *RWLock) RLocker() locks.Locker { return readLocker{l} }

type readLocker struct{ of *RWLock }

func (r readLocker) Path() string                                      { return r.of.Path() }
func (r readLocker) Lock(ctx context.Context) (*locks.Lease, error)    { return r.of.RLock(ctx) }
func (r readLocker) TryLock(ctx context.Context) (*locks.Lease, error) { return r.of.TryRLock(ctx) }
