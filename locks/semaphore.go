package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// Semaphore lets a number of permits be held at once. Its layout is that of Apache Curator's
// InterProcessSemaphoreV2, with one permit that of InterProcessSemaphoreMutex:
//
//	<path>/locks/_c_<uuid>-lock-#     ephemeral sequential, one for each waiter
//	<path>/leases/_c_<uuid>-lease-#   ephemeral sequential, one for each permit that is held
//	<path>/permits                    persistent: how many there are, as JSON
//
// Guarantee: never more permits are held than there are. Waiters are served in order. Who asks for
// several gets them together, and holds none while it waits. The members agree on the number: one that
// was made with another fails with a *PermitsError. Curator's members do not read it: keep them at the
// same number.
//
// Not guaranteed: that the leases' tokens fence anything. They tell grants apart.
type Semaphore struct {
	client  *framework.Client
	line    *Line
	path    string
	leases  string
	record  string
	permits int
	err     error

	mu    sync.Mutex
	known *permits
}

const leaseName = "lease-"

// NewSemaphore returns a semaphore of so many permits at path. Nothing is created before it is used. An
// argument that cannot be used makes every call return an error that says so.
func NewSemaphore(client *framework.Client, path string, permits int, opts ...Option) *Semaphore {
	s := &Semaphore{client: client, path: path, permits: permits}
	s.line = newLine(client, path, locksPart, MutexKind, opts...)
	s.line.label = "semaphore"
	s.line.without(s.line.slice != nil, "WithLocalSlice is for mutexes")
	s.line.without(s.line.kazoo, "WithKazoo is for mutexes and read-write locks")
	s.line.without(s.line.reentry, "WithReentry is for mutexes and read-write locks")
	if s.err = s.line.err; s.err == nil {
		s.leases, s.record = framework.Join(path, leasesPart), framework.Join(path, permitsPart)
		s.err = s.valid(permits)
	}
	return s
}

func (s *Semaphore) valid(n int) error {
	if s.err != nil {
		return s.err
	}
	if n < 1 || n > maxPermits {
		return fmt.Errorf("%w: %d, there must be 1 to %d", ErrPermits, n, maxPermits)
	}
	return nil
}

// maxPermits bounds the list of leases, which must fit into one answer of about 1 MB.
const maxPermits = 10_000

// mostAtOnce bounds the permits of one lease, whose nodes one transaction creates.
func (s *Semaphore) mostAtOnce(ctx context.Context) int {
	const transaction, node = 900 << 10, 256 // bytes, the latter without path and data
	return min(1000, transaction/(node+len(s.leases)+len(s.client.Config().Root)+len(s.line.describe(ctx))))
}

// Path is the semaphore's path.
func (s *Semaphore) Path() string { return s.path }

// Acquire waits in line until n permits are free at once, and takes them. Its errors are those of
// Mutex.Lock, or wrap ErrPermits.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.ask(ctx, "acquire", n, s.line.stand, s.room)
}

// TryAcquire takes n permits at once, or returns an error that wraps ErrNotAcquired: they are not free, or
// somebody waits already.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.ask(ctx, "try", n, s.line.step, s.roomNow)
}

// Lock is Acquire of one permit.
func (s *Semaphore) Lock(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, 1) }

// TryLock is TryAcquire of one permit.
func (s *Semaphore) TryLock(ctx context.Context) (*Lease, error) { return s.TryAcquire(ctx, 1) }

// Permits returns what asks for n permits, for Do and NewMulti.
func (s *Semaphore) Permits(n int) Locker { return several{s, n} }

// several asks for a number of permits.
type several struct {
	*Semaphore
	n int
}

func (a several) Lock(ctx context.Context) (*Lease, error)    { return a.Acquire(ctx, a.n) }
func (a several) TryLock(ctx context.Context) (*Lease, error) { return a.TryAcquire(ctx, a.n) }

// Contenders lists the waiters in order.
func (s *Semaphore) Contenders(ctx context.Context) ([]Contender, error) {
	return s.line.Contenders(ctx)
}

// spaceFinder returns the number of permits that it found room in.
type spaceFinder func(ctx context.Context, sess *framework.Session, n int) (permits, error)

func (s *Semaphore) ask(ctx context.Context, op string, n int,
	pass func(context.Context, *contender) error, room spaceFinder) (lease *Lease, err error) {
	if err := s.valid(n); err != nil {
		return nil, framework.Wrap(op, s.path, err)
	}
	if most := s.mostAtOnce(ctx); n > most {
		return nil, framework.Wrap(op, s.path, fmt.Errorf("%w: %d, at most %d can be taken at once", ErrPermits, n, most))
	}
	ctx, end := s.line.trace(ctx, op)
	defer func() { end(lease, err) }()
	if err := s.prepare(ctx, n); err != nil {
		return nil, framework.Wrap(op, s.path, err)
	}
	return s.line.each(ctx, op, func(ctx context.Context, sess *framework.Session) (*Lease, error) {
		return s.line.admitted(ctx, sess, pass, func(ctx context.Context, c *contender) (*Lease, error) {
			return s.take(ctx, c, n, room)
		})
	})
}

// prepare refuses what can be known to fail before it queues.
func (s *Semaphore) prepare(ctx context.Context, n int) error {
	s.mu.Lock()
	first := s.known == nil
	s.mu.Unlock()
	if first {
		if err := s.unmixed(ctx); err != nil {
			return err
		}
	}
	_, err := s.limit(ctx, n)
	return err
}

// unmixed refuses a directory in which another kind of lock has its contenders.
func (s *Semaphore) unmixed(ctx context.Context) error {
	names, _, err := s.client.Children(ctx, s.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	for _, name := range names {
		if _, ok := parse(name); ok {
			return fmt.Errorf("%w: %s in a semaphore's directory", ErrKindMixed, name)
		}
	}
	return nil
}

// limit returns the number of permits as it is known, which a grant checks again, and refuses to wait
// for more than there are.
func (s *Semaphore) limit(ctx context.Context, n int) (permits, error) {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if known != nil && n <= known.Permits {
		return *known, nil
	}
	p, err := s.fresh(ctx)
	if err != nil {
		return permits{}, err
	}
	return p, s.fits(p, n)
}

// fresh reads the number of permits.
func (s *Semaphore) fresh(ctx context.Context) (permits, error) {
	p, err := s.agreed(ctx)
	if err == nil {
		s.learn(&p)
	}
	return p, err
}

func (s *Semaphore) fits(p permits, n int) error {
	if n > p.Permits {
		return &PermitsError{s.path, p.Permits, n}
	}
	return nil
}

// learn notes the number of permits; nil forgets it.
func (s *Semaphore) learn(p *permits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = p
}
