package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// RWLock is a fair lock for many readers or one writer. Its layout is that of Apache Curator's
// InterProcessReadWriteLock:
//
//	<path>                       container
//	<path>/_c_<uuid>-__READ__#   ephemeral sequential, one for each reader
//	<path>/_c_<uuid>-__WRIT__#   ephemeral sequential, one for each writer
//
// A reader waits for the last earlier writer, a writer for all earlier contenders. A reader that
// joins after a waiting writer waits for that writer.
//
// A writer may downgrade its lock: RLock with the write lease's context is granted at once, with
// the writer's number and token. The release of the write lease then admits further readers. The
// other way fails with ErrHeld. The tokens of writers rise; those of readers tell them apart.
type RWLock struct{ reader, writer commonLock }

// NewRWLock returns a read-write lock at path.
func NewRWLock(client *framework.Client, path string, opts ...RWLockOption) *RWLock {
	all, err := optionsOf(opts, RWLockOption.applyToRWLock)
	return &RWLock{
		reader: newLock(client, path, readKind, all, err).withLine(waitline.Read),
		writer: newLock(client, path, writeKind, all, err).withLine(waitline.Write),
	}
}

// Path is the lock's path.
func (l *RWLock) Path() string { return l.writer.path }

// Validate returns what is wrong with the arguments of NewRWLock, as every call does, or nil. It
// sends no request.
func (l *RWLock) Validate() error { return l.writer.err }

// Lock waits in line until this is the only holder. Its errors are those of Mutex.Lock, and
// ErrHeld.
func (l *RWLock) Lock(ctx context.Context) (*Lease, error) { return l.writer.waitUntilGranted(ctx) }

// TryLock acquires the lock for writing at once or returns an error that wraps ErrNotAcquired. Its
// other errors are those of Lock.
func (l *RWLock) TryLock(ctx context.Context) (*Lease, error) { return l.writer.tryAcquire(ctx) }

// RLock waits until no writer that has joined before holds or waits. Its errors are those of
// Mutex.Lock, or wrap ErrReleased if ctx is of a write lease that ends meanwhile.
func (l *RWLock) RLock(ctx context.Context) (*Lease, error) { return l.reader.waitUntilGranted(ctx) }

// TryRLock acquires the lock for reading at once or returns an error that wraps ErrNotAcquired,
// also while a writer only waits. Its other errors are those of RLock.
func (l *RWLock) TryRLock(ctx context.Context) (*Lease, error) { return l.reader.tryAcquire(ctx) }

// RLocker returns the lock's reading half, for Do and NewMultiLock.
func (l *RWLock) RLocker() Locker { return readLocker{l} }

type readLocker struct{ lock *RWLock }

func (r readLocker) Path() string                                { return r.lock.Path() }
func (r readLocker) Lock(ctx context.Context) (*Lease, error)    { return r.lock.RLock(ctx) }
func (r readLocker) TryLock(ctx context.Context) (*Lease, error) { return r.lock.TryRLock(ctx) }
