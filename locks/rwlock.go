package locks

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// RWLock is a fair lock for many readers or one writer. Its layout is that of Apache Curator's
// InterProcessReadWriteLock:
//
//	<path>                       container
//	<path>/_c_<uuid>-__READ__#   ephemeral sequential, one for each reader
//	<path>/_c_<uuid>-__WRIT__#   ephemeral sequential, one for each writer
//
// A reader waits for the last writer before it, a writer for all before it. Nobody overtakes: a reader
// that comes after a waiting writer waits for that.
//
// A writer may go on as a reader: RLock with the write lease's context is granted at once, in the
// writer's place and with its token; releasing the write lease then lets in the readers behind it. The
// other way is refused with ErrUpgrade. The tokens of writers rise; those of readers tell them apart.
type RWLock struct{ read, write *Line }

// NewRWLock returns a read-write lock at path. Nothing is created before it is used. An argument that
// cannot be used makes every call return an error that says so.
func NewRWLock(client *framework.Client, path string, opts ...Option) *RWLock {
	return &RWLock{NewLine(client, path, ReadKind, opts...), NewLine(client, path, WriteKind, opts...)}
}

// Path is the lock's path.
func (l *RWLock) Path() string { return l.write.path }

// Lock waits in line until this is the only holder; its errors are those of Mutex.Lock, and ErrUpgrade.
func (l *RWLock) Lock(ctx context.Context) (*Lease, error) { return l.write.Acquire(ctx) }

// TryLock is granted the lock for writing at once or returns an error that wraps ErrNotAcquired.
func (l *RWLock) TryLock(ctx context.Context) (*Lease, error) { return l.write.TryAcquire(ctx) }

// RLock waits until no writer is before it; its errors are those of Mutex.Lock.
func (l *RWLock) RLock(ctx context.Context) (*Lease, error) { return l.read.Acquire(ctx) }

// TryRLock is granted the lock for reading at once or returns an error that wraps ErrNotAcquired.
func (l *RWLock) TryRLock(ctx context.Context) (*Lease, error) { return l.read.TryAcquire(ctx) }

// RLocker returns the lock's reading half, for Do and NewMulti.
func (l *RWLock) RLocker() Locker { return readHalf{l.read} }

// Contenders lists holders and waiters in order.
func (l *RWLock) Contenders(ctx context.Context) ([]Contender, error) { return l.write.Contenders(ctx) }

// readHalf is the reading half of a lock.
type readHalf struct{ line *Line }

func (r readHalf) Path() string                                { return r.line.path }
func (r readHalf) Lock(ctx context.Context) (*Lease, error)    { return r.line.Acquire(ctx) }
func (r readHalf) TryLock(ctx context.Context) (*Lease, error) { return r.line.TryAcquire(ctx) }

// downgrade makes a read lease in the place of a write lease. The reader's node has the writer's number, as
// Curator's has (CURATOR-621), so that it stands where the writer stands; it is created by a
// transaction that the writer's lease guards.
func (l *Line) downgrade(ctx context.Context, writer *Lease) (*Lease, error) {
	w := writer.contender
	c := newContender(l, w.s)
	c.place = position{kind: ReadKind, seq: w.place.seq}
	if !c.local.addDowngraded(w, c) {
		c.local.leave(l)
		return nil, ErrReleased
	}
	lease, err := l.createInPlace(ctx, c, writer)
	if err != nil {
		c.abandon()
	}
	return lease, err
}

func (l *Line) createInPlace(ctx context.Context, c *contender, writer *Lease) (*Lease, error) {
	created, err := c.s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: l.path, Name: string(ReadKind) + writer.contender.place.sequenceDigits(), Data: l.ownerRecord(ctx),
		Count: 1, Mode: framework.Ephemeral, With: []framework.Op{writer.Guard()},
	})
	if err != nil {
		return nil, err
	}
	c.node = created.Nodes[0]
	return l.newLease(ctx, c, writer.token)
}
