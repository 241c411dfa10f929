package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Semaphore lets a number of permits be held at once. Its layout is that of Apache Curator's
// InterProcessSemaphoreV2, with one permit that of InterProcessSemaphoreMutex:
//
//	<path>/locks/_c_<uuid>-lock-#     ephemeral sequential, one for each waiter
//	<path>/leases/_c_<uuid>-lease-#   ephemeral sequential, one for each permit that is held
//	<path>/permits                    persistent: the number of permits, as JSON
//
// Guarantee: the holders together do not have more permits than the limit. Waiters are served in
// order. A waiter for several permits gets them together, and does not hold some while it waits for
// the rest. The members agree on the number: the calls of a member that was made with another
// number fail with a *MismatchError. Curator's members do not read the record: keep them at the
// same number.
//
// Not guaranteed: that the leases' tokens fence. They tell grants apart.
type Semaphore struct {
	lock   commonLock // its line is in <path>/locks
	leases string     // the directory
	limit  permitLimit
}

const leaseName = "lease-"

// maxPermits bounds the list of leases, which must fit into one answer of about 1 MB.
const maxPermits = 10_000

// NewSemaphore returns a semaphore of so many permits at path.
func NewSemaphore(client *framework.Client, path string, permits int, opts ...SemaphoreOption) *Semaphore {
	all, err := optionsOf(opts, SemaphoreOption.applyToSemaphore)
	if err == nil {
		err = checkPermits(permits)
	}
	s := &Semaphore{lock: newLock(client, path, semaphoreKind, all, err)}
	s.lock.key = nil // a holder of permits may acquire more
	if s.lock.err == nil {
		s.lock.line = waitline.New(znode.Join(path, waitline.LocksPart), waitline.Filter{Kind: waitline.Mutex},
			all.onWait)
		s.leases = znode.Join(path, waitline.LeasesPart)
		s.limit = permitLimit{client: client, path: path, node: znode.Join(path, waitline.PermitsPart),
			declared: permits}
	}
	return s
}

func checkPermits(n int) error {
	if n < 1 || n > maxPermits {
		return fmt.Errorf("%w: %d, there must be 1 to %d", errPermits, n, maxPermits)
	}
	return nil
}

// Path is the semaphore's path.
func (s *Semaphore) Path() string { return s.lock.path }

// Validate returns what is wrong with the arguments of NewSemaphore, as every call does, or nil. It
// sends no request.
func (s *Semaphore) Validate() error { return s.lock.err }

// Lock is Acquire of one permit.
func (s *Semaphore) Lock(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, 1) }

// TryLock is TryAcquire of one permit.
func (s *Semaphore) TryLock(ctx context.Context) (*Lease, error) { return s.TryAcquire(ctx, 1) }

// Permits returns a Locker that acquires n permits, for Do and NewMultiLock.
func (s *Semaphore) Permits(n int) Locker { return permitLocker{s, n} }

type permitLocker struct {
	semaphore *Semaphore
	n         int
}

func (p permitLocker) Path() string                             { return p.semaphore.Path() }
func (p permitLocker) Lock(ctx context.Context) (*Lease, error) { return p.semaphore.Acquire(ctx, p.n) }
func (p permitLocker) TryLock(ctx context.Context) (*Lease, error) {
	return p.semaphore.TryAcquire(ctx, p.n)
}

// Limit is the number of permits at present. It creates <path>/permits if that is missing. The
// error wraps framework.ErrMismatch if this Semaphore was made with a wrong number; see SetLimit.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if s.lock.err != nil {
		return 0, failure.Wrap("limit", s.lock.path, s.lock.err)
	}
	p, err := s.limit.readFitting(ctx, 0)
	return p.Permits, failure.Wrap("limit", s.lock.path, err)
}

// SetLimit changes the number of permits for all members. A member may be made with the number from
// before the first SetLimit, or with the present one; with any other number its calls fail. More
// permits let waiters in at once. With fewer permits, no waiter is let in until enough were
// released. A waiter that asks for more permits than there are then fails with
// framework.ErrMismatch.
//
// Of two calls at the same time, the number stays that the servers have taken last, also when a
// connection is lost meanwhile; neither call fails because of the other. The error wraps
// framework.ErrMismatch for a number that is not possible, or if this Semaphore was made with a
// wrong number. Otherwise it is that of ctx, wraps framework.ErrSessionLost, or is a refusal of the
// servers. It wraps framework.ErrOutcomeUnknown too if the number may have been written.
func (s *Semaphore) SetLimit(ctx context.Context, n int) error {
	err := s.lock.err
	if err == nil {
		err = checkPermits(n)
	}
	if err == nil {
		err = s.limit.setPermits(ctx, n)
	}
	return failure.Wrap("set the limit of", s.lock.path, err)
}

// Acquire waits in line until it can acquire n permits at once. Its errors are those of Mutex.Lock
// without ErrHeld, or wrap framework.ErrMismatch.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquire(ctx, "acquire", n,
		func(ctx context.Context, sess *framework.Session, data []byte, w *waitline.Wait) (*waitline.Contender, error) {
			c, err := s.lock.line.Wait(ctx, sess, data, w)
			if err == nil && w.Queued != nil { // it may wait for permits
				w.Queued(c.Node())
			}
			return c, err
		}, s.waitForRoom)
}

// TryAcquire acquires n permits at once. If they are not free, or if another contender waits, it
// returns an error that wraps ErrNotAcquired. Its other errors are those of Acquire.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquire(ctx, "try", n, func(ctx context.Context, sess *framework.Session, data []byte,
		_ *waitline.Wait) (*waitline.Contender, error) {
		return s.lock.line.Try(ctx, sess, data)
	}, s.findRoom)
}

// acquire lets the caller through the line by join, and acquires n permits of those for which room
// has found room.
func (s *Semaphore) acquire(ctx context.Context, op string, n int,
	join func(context.Context, *framework.Session, []byte, *waitline.Wait) (*waitline.Contender, error),
	room func(context.Context, *framework.Session, int) (permitRecord, error)) (*Lease, error) {
	if err := s.checkRequest(ctx, n); err != nil {
		return nil, failure.Wrap(op, s.lock.path, err)
	}
	return s.lock.acquire(ctx, op, n, func(ctx context.Context, sess *framework.Session,
		w *waitline.Wait) (*Lease, error) {
		if err := s.checkUnmixed(ctx); err != nil {
			return nil, err
		}
		if _, err := s.limit.cachedRecord(ctx, n); err != nil { // do not wait for more permits than there are
			return nil, err
		}
		c, err := join(ctx, sess, s.lock.contenderData(ctx), w)
		if err != nil {
			return nil, err
		}
		granted := false
		defer func() { // the function of WithOnWait may panic
			if !granted { // while it waited for permits, nobody has looked at its node
				c.Unlink()
				c.Leave(nil)
			}
		}()
		lease, err := s.takePermits(ctx, w.Caller, c, n, room)
		granted = err == nil
		return lease, err
	})
}

// checkRequest refuses a number of permits that is too large for one lease.
func (s *Semaphore) checkRequest(ctx context.Context, n int) error {
	if s.lock.err != nil {
		return s.lock.err
	}
	if err := checkPermits(n); err != nil {
		return err
	}
	const transaction, node = 900 << 10, 256 // bytes, the latter without path and data
	one := node + len(s.leases) + len(s.lock.client.Config().Root) + len(s.lock.contenderData(ctx))
	if most := min(1000, transaction/one); n > most { // one transaction creates the nodes of a lease
		return fmt.Errorf("%w: %d, at most %d can be acquired at once", errPermits, n, most)
	}
	return nil
}

// checkUnmixed refuses a directory in which another kind of lock has its contenders. It checks
// until the first record was read.
func (s *Semaphore) checkUnmixed(ctx context.Context) error {
	if s.limit.isKnown() {
		return nil
	}
	names, _, err := s.lock.client.Children(ctx, s.lock.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	for _, name := range names {
		if _, ok := waitline.ParsePosition(name); ok {
			return fmt.Errorf("%w: %s in a semaphore's directory", waitline.ErrKindMixed, name)
		}
	}
	return nil
}

// takePermits acquires n permits for the first in line. One transaction creates the leases, deletes
// the node in line, and checks that the record is the one in which room was found. A read behind
// the transaction finds out whether the record was deleted and created again meanwhile; then the
// permits are given back.
func (s *Semaphore) takePermits(ctx, caller context.Context, c *waitline.Contender, n int,
	room func(context.Context, *framework.Session, int) (permitRecord, error)) (*Lease, error) {
	for {
		p, err := room(ctx, c.Session(), n)
		if err != nil {
			return nil, err
		}
		c.BeginLeave()
		created, err := primitives.Of(c.Session()).CreateProtected(ctx, primitives.ProtectedCreate{
			Dir: s.leases, Name: leaseName, Data: s.lock.contenderData(ctx), Count: n,
			With: []framework.Op{framework.CheckOp(s.limit.node, p.version),
				framework.DeleteOp(c.Node().Path, framework.AnyVersion)},
			Stat: s.limit.node,
		})
		var refused *framework.TxError
		switch {
		case err == nil:
			c.WakeNext()
			if err := s.limit.checkNotReplaced(ctx, c.Session(), p, created.StatCzxid); err != nil {
				return nil, s.returnPermits(ctx, c.Session(), created.Nodes, err)
			}
			return s.newLease(caller, c.Session(), created.Nodes)
		case !errors.As(err, &refused):
			return nil, err
		case refused.Index == n && !errors.Is(err, framework.ErrNoAuth): // resized, or deleted
			s.limit.rememberRecord(nil)
		case refused.Index > n && errors.Is(err, framework.ErrNoNode):
			return nil, waitline.ErrPlaceLost
		default:
			return nil, err
		}
	}
}

// returnPermits gives permits back that must not be used. It returns the reason, or ErrPlaceLost if
// the contender has to join again. Then it waits for the deletion, but no longer than a cleanup.
func (s *Semaphore) returnPermits(ctx context.Context, sess *framework.Session, created []primitives.Created,
	reason error) error {
	nodes := createdPaths(created)
	d := primitives.Of(sess).Discard(nil, nodes[0], nodes[1:]...)
	if !errors.Is(reason, errRecordReplaced) {
		return reason
	}
	s.limit.rememberRecord(nil)
	waiting, cancel := context.WithTimeout(ctx, s.lock.client.Config().CleanupTimeout) // the servers may refuse it
	defer cancel()
	_ = d.Wait(waiting) // goes on in the background
	return waitline.ErrPlaceLost
}

func createdPaths(created []primitives.Created) []string {
	nodes := make([]string, len(created))
	for i, c := range created {
		nodes[i] = c.Path
	}
	return nodes
}

func (s *Semaphore) newLease(caller context.Context, sess *framework.Session,
	created []primitives.Created) (*Lease, error) {
	held := &heldPermits{session: sess, nodes: createdPaths(created)}
	lease := &Lease{client: s.lock.client, path: s.lock.path, kind: semaphoreKind, node: held.nodes[0],
		nodes: held.nodes, token: created[0].Zxid, session: sess}
	var err error
	held.Hold, err = primitives.Of(sess).Hold(leaseContext{caller, lease}, created[0], created[1:]...)
	if err != nil {
		primitives.Of(sess).Discard(nil, held.nodes[0], held.nodes[1:]...)
		return nil, err
	}
	return s.lock.begin(lease, held), nil
}

// heldPermits are the nodes of a lease's permits. They implement ownNodes.
type heldPermits struct {
	primitives.Hold
	session *framework.Session
	nodes   []string
}

func (p *heldPermits) Release(cause error, queued func()) primitives.Discarded {
	p.End(cause)
	return primitives.Of(p.session).Discard(queued, p.nodes[0], p.nodes[1:]...)
}

// findRoom returns the record if n permits are free, and fails with ErrNotAcquired otherwise.
func (s *Semaphore) findRoom(ctx context.Context, sess *framework.Session, n int) (permitRecord, error) {
	p, err := s.limit.cachedRecord(ctx, n)
	if err != nil {
		return permitRecord{}, err
	}
	names, _, err := sess.Children(ctx, s.leases)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return permitRecord{}, err
	}
	if len(names)+n <= p.Permits {
		return p, nil
	}
	fresh, err := s.limit.rereadRecord(ctx) // another member may have resized
	if err == nil && len(names)+n > fresh.Permits {
		err = ErrNotAcquired
	}
	return fresh, err
}

// waitForRoom waits until n permits are free.
func (s *Semaphore) waitForRoom(ctx context.Context, sess *framework.Session, n int) (permitRecord, error) {
	p, err := s.findRoom(ctx, sess, n)
	if !errors.Is(err, ErrNotAcquired) {
		return p, err
	}
	if s.lock.opts.onWait != nil { // the first in line waits for holders
		s.lock.opts.onWait(0)
	}
	primitives.Of(sess).StayAwake()
	defer primitives.Of(sess).MaySleep()
	for {
		p, free, err := s.findRoomOrWait(ctx, sess, n)
		if free || err != nil {
			return p, err
		}
	}
}

// findRoomOrWait returns the record if n permits are free, and waits for a change otherwise.
func (s *Semaphore) findRoomOrWait(ctx context.Context, sess *framework.Session,
	n int) (p permitRecord, free bool, err error) {
	p, record, err := s.limit.watchRecord(ctx, sess, n)
	if err != nil {
		return p, false, err
	}
	defer record.Stop()
	names, _, leases, err := sess.WatchChildren(ctx, s.leases)
	if errors.Is(err, framework.ErrNoNode) { // all permits were released, and the server has removed the directory
		return p, true, nil
	}
	if err != nil {
		return p, false, err
	}
	defer leases.Stop()
	if len(names)+n <= p.Permits {
		return p, true, nil
	}
	_, _, err = recipe.WaitForFirst(ctx, sess.Context(), recipe.Sources{Watch: leases, SecondWatch: record})
	return p, false, err
}
