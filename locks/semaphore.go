package locks

import (
	"context"
	"encoding/json"
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
	s.line.rejectOption(s.line.slice != nil, "WithLocalHandoff is for mutexes")
	s.line.rejectOption(s.line.kazoo, "WithKazoo is for mutexes and read-write locks")
	s.line.rejectOption(s.line.reentry, "WithReentry is for mutexes and read-write locks")
	if s.err = s.line.err; s.err == nil {
		s.leases, s.record = framework.Join(path, leasesPart), framework.Join(path, permitsPart)
		s.err = s.checkArguments(permits)
	}
	return s
}

func (s *Semaphore) checkArguments(n int) error {
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
	return min(1000, transaction/(node+len(s.leases)+len(s.client.Config().Root)+len(s.line.ownerRecord(ctx))))
}

// Path is the semaphore's path.
func (s *Semaphore) Path() string { return s.path }

// Acquire waits in line until n permits are free at once, and takes them. Its errors are those of
// Mutex.Lock, or wrap ErrPermits.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquirePermits(ctx, "acquire", n, s.line.joinAndWait, s.waitForRoom)
}

// TryAcquire takes n permits at once, or returns an error that wraps ErrNotAcquired: they are not free, or
// somebody waits already.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.acquirePermits(ctx, "try", n, s.line.joinIfFree, s.findRoomNow)
}

// Lock is Acquire of one permit.
func (s *Semaphore) Lock(ctx context.Context) (*Lease, error) { return s.Acquire(ctx, 1) }

// TryLock is TryAcquire of one permit.
func (s *Semaphore) TryLock(ctx context.Context) (*Lease, error) { return s.TryAcquire(ctx, 1) }

// Permits returns what asks for n permits, for Do and NewMulti.
func (s *Semaphore) Permits(n int) Locker { return permitLocker{s, n} }

// permitLocker asks for a number of permits.
type permitLocker struct {
	semaphore *Semaphore
	n         int
}

func (p permitLocker) Path() string                             { return p.semaphore.Path() }
func (p permitLocker) Lock(ctx context.Context) (*Lease, error) { return p.semaphore.Acquire(ctx, p.n) }
func (p permitLocker) TryLock(ctx context.Context) (*Lease, error) {
	return p.semaphore.TryAcquire(ctx, p.n)
}

// Contenders lists the waiters in order.
func (s *Semaphore) Contenders(ctx context.Context) ([]Contender, error) {
	return s.line.Contenders(ctx)
}

// spaceFinder returns the number of permits that it found room in.
type spaceFinder func(ctx context.Context, sess *framework.Session, n int) (permits, error)

func (s *Semaphore) acquirePermits(ctx context.Context, op string, n int,
	pass func(context.Context, *contender) error, room spaceFinder) (lease *Lease, err error) {
	if err := s.checkArguments(n); err != nil {
		return nil, framework.Wrap(op, s.path, err)
	}
	if most := s.mostAtOnce(ctx); n > most {
		return nil, framework.Wrap(op, s.path, fmt.Errorf("%w: %d, at most %d can be taken at once", ErrPermits, n, most))
	}
	ctx, end := s.line.startSpan(ctx, op)
	defer func() { end(lease, err) }()
	if err := s.checkBeforeQueueing(ctx, n); err != nil {
		return nil, framework.Wrap(op, s.path, err)
	}
	return s.line.acquireOnSessions(ctx, op, func(ctx context.Context, sess *framework.Session) (*Lease, error) {
		return s.line.grantAdmitted(ctx, sess, pass, func(ctx context.Context, c *contender) (*Lease, error) {
			return s.takePermits(ctx, c, n, room)
		})
	})
}

// checkBeforeQueueing refuses what can be known to fail before it queues.
func (s *Semaphore) checkBeforeQueueing(ctx context.Context, n int) error {
	s.mu.Lock()
	first := s.known == nil
	s.mu.Unlock()
	if first {
		if err := s.checkUnmixed(ctx); err != nil {
			return err
		}
	}
	_, err := s.permitLimit(ctx, n)
	return err
}

// checkUnmixed refuses a directory in which another kind of lock has its contenders.
func (s *Semaphore) checkUnmixed(ctx context.Context) error {
	names, _, err := s.client.Children(ctx, s.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	for _, name := range names {
		if _, ok := parsePosition(name); ok {
			return fmt.Errorf("%w: %s in a semaphore's directory", ErrKindMixed, name)
		}
	}
	return nil
}

// permitLimit returns the number of permits as it is known, which a grant checks again, and refuses to wait
// for more than there are.
func (s *Semaphore) permitLimit(ctx context.Context, n int) (permits, error) {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if known != nil && n <= known.Permits {
		return *known, nil
	}
	p, err := s.readPermitLimit(ctx)
	if err != nil {
		return permits{}, err
	}
	return p, s.checkFits(p, n)
}

// readPermitLimit reads the number of permits.
func (s *Semaphore) readPermitLimit(ctx context.Context) (permits, error) {
	p, err := s.agreedPermits(ctx)
	if err == nil {
		s.rememberLimit(&p)
	}
	return p, err
}

func (s *Semaphore) checkFits(p permits, n int) error {
	if n > p.Permits {
		return &PermitsError{s.path, p.Permits, n}
	}
	return nil
}

// rememberLimit notes the number of permits; nil forgets it.
func (s *Semaphore) rememberLimit(p *permits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = p
}

// PermitsError tells that a semaphore's members do not agree on the number of permits, or that one asked
// for more than there are. It wraps ErrPermits.
type PermitsError struct {
	// Path is the semaphore's path.
	Path string
	// Stored is how many permits the semaphore has, Given the number that does not fit.
	Stored, Given int
}

func (e *PermitsError) Error() string {
	return fmt.Sprintf("%v: %s has %d, %d were given", ErrPermits, e.Path, e.Stored, e.Given)
}

// Unwrap returns ErrPermits.
func (e *PermitsError) Unwrap() error { return ErrPermits }

// permits is what a semaphore's members agree on, stored as JSON.
type permits struct {
	// Declared is the number that the members were made with, Permits the one that holds since the last
	// Resize.
	Declared, Permits int

	version int32                      // of the node
	created int64                      // the transaction that created the node: versions begin anew with each node
	fields  map[string]json.RawMessage // all of the record, later versions' ones too
}

const permitsVersion = 1

func parsePermits(data []byte) (p permits, err error) {
	if err := json.Unmarshal(data, &p.fields); err != nil {
		return p, fmt.Errorf("the record of the permits: %w", err)
	}
	var v int
	for name, to := range map[string]*int{"v": &v, "declared": &p.Declared, "permits": &p.Permits} {
		if err := json.Unmarshal(p.fields[name], to); err != nil {
			return p, fmt.Errorf("the record of the permits: %q: %w", name, err)
		}
	}
	switch {
	case v > permitsVersion:
		return p, fmt.Errorf("the record of the permits has version %d, this release knows %d: update it", v, permitsVersion)
	case v < 1 || p.Declared < 1 || p.Permits < 1:
		return p, fmt.Errorf("the record of the permits %q: its numbers must be more than 0", data)
	}
	return p, nil
}

func (p permits) encode() []byte {
	if p.fields == nil {
		p.fields = map[string]json.RawMessage{}
	}
	for name, n := range map[string]int{"v": permitsVersion, "declared": p.Declared, "permits": p.Permits} {
		p.fields[name] = fmt.Append(nil, n)
	}
	data, err := json.Marshal(p.fields)
	if err != nil {
		panic("locks: permits cannot be written: " + err.Error()) // they are valid JSON already
	}
	return data
}

// agreedPermits reads the record, or writes it if there is none, and checks the member's own number.
func (s *Semaphore) agreedPermits(ctx context.Context) (permits, error) {
	for {
		data, st, err := s.client.Get(ctx, s.record)
		switch {
		case err == nil:
			return s.checkPermits(data, st)
		case !errors.Is(err, framework.ErrNoNode):
			return permits{}, err
		}
		if err := s.createRecord(ctx); err != nil {
			return permits{}, err
		}
	}
}

func (s *Semaphore) checkPermits(data []byte, st framework.Stat) (permits, error) {
	p, err := parsePermits(data)
	if err == nil && s.permits != p.Declared && s.permits != p.Permits {
		err = &PermitsError{s.path, p.Permits, s.permits}
	}
	p.version, p.created = st.Version, st.Czxid
	return p, err
}

// checkRecordVersion returns nil if the record in which room was found is still the one that there is. st is what a look behind
// the grant has seen, or nil. The transaction has checked the record's version only, and the first version of a
// record that was deleted and declared again is the same.
func (s *Semaphore) checkRecordVersion(ctx context.Context, sess *framework.Session, p permits, st *framework.Stat) error {
	if st == nil {
		seen, err := sess.Exists(ctx, s.record)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		st = &seen
	}
	if st.Czxid != p.created {
		return errRecordReplaced
	}
	return nil
}

// errRecordReplaced says that permits were taken by a record that had been deleted.
var errRecordReplaced = errors.New("the record of the permits was replaced")

// createRecord writes the first record; somebody else may be faster.
func (s *Semaphore) createRecord(ctx context.Context) error {
	record := permits{Declared: s.permits, Permits: s.permits}.encode()
	err := s.client.Create(ctx, s.record, record, framework.Persistent)
	switch {
	case errors.Is(err, framework.ErrNodeExists), framework.IsTransient(err):
		return nil // who asks looks again
	case errors.Is(err, framework.ErrNoNode):
		return s.client.MakeDirs(ctx, s.path)
	}
	return err
}

// Resize changes the number of permits, for all members, whatever number they were made with. More
// permits let waiters in at once; with fewer, nobody is let in until so many were given back. Waiters that
// ask for more than there are left fail with ErrPermits.
func (s *Semaphore) Resize(ctx context.Context, n int) error {
	if err := s.checkArguments(n); err != nil {
		return framework.Wrap("resize", s.path, err)
	}
	for {
		p, err := s.agreedPermits(ctx)
		if err != nil {
			return framework.Wrap("resize", s.path, err)
		}
		p.Permits = n
		_, err = s.client.Set(ctx, s.record, p.encode(), p.version)
		s.rememberLimit(nil)
		if errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil {
			if now, look := s.agreedPermits(ctx); look == nil && now.Permits == n {
				return nil
			}
		}
		if !errors.Is(err, framework.ErrBadVersion) && !errors.Is(err, framework.ErrNoNode) {
			return framework.Wrap("resize", s.path, err)
		}
	}
}

// Limit is the number of permits that holds now.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if s.err != nil {
		return 0, framework.Wrap("limit", s.path, s.err)
	}
	p, err := s.agreedPermits(ctx)
	return p.Permits, framework.Wrap("limit", s.path, err)
}

// takePermits takes n permits for the first in line: one transaction creates the leases, removes the node in
// line, and checks that the number of permits is the one that room was found in. A look behind the transaction
// finds out whether the record was deleted and declared again meanwhile: then the permits are given back.
func (s *Semaphore) takePermits(ctx context.Context, c *contender, n int, room spaceFinder) (*Lease, error) {
	for {
		p, err := room(ctx, c.s, n)
		if err != nil {
			return nil, err
		}
		made, err := c.s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
			Dir: s.leases, Name: leaseName, Data: s.line.ownerRecord(ctx), Count: n, Mode: framework.EphemeralSequential,
			With: []framework.Op{framework.CheckOp(s.record, p.version), framework.DeleteOp(c.node.Path, framework.AnyVersion)},
			Stat: s.record,
		})
		var refused *framework.TxError
		switch {
		case err == nil:
			c.leaveLocalWaiters()
			if err := s.checkRecordVersion(ctx, c.s, p, made.Stat); err != nil {
				return nil, s.returnPermits(ctx, c.s, made.Nodes, err)
			}
			return s.newPermitLease(ctx, c.s, made.Nodes)
		case !errors.As(err, &refused):
			return nil, err
		case refused.Index == n && !errors.Is(err, framework.ErrNoAuth): // resized, or deleted
			s.rememberLimit(nil)
		case refused.Index > n && errors.Is(err, framework.ErrNoNode):
			return nil, errPlaceLost
		default:
			return nil, err
		}
	}
}

// returnPermits gives permits back that must not be used, and returns why. Who was in line has to queue again.
func (s *Semaphore) returnPermits(ctx context.Context, sess *framework.Session, created []framework.Created, reason error) error {
	d := sess.Primitives().Discard(nil, paths(created)...)
	if !errors.Is(reason, errRecordReplaced) {
		return reason
	}
	s.rememberLimit(nil)
	select {
	case <-d.Done():
	case <-ctx.Done():
	}
	return errPlaceLost
}

// paths are the paths of nodes.
func paths(created []framework.Created) []string {
	nodes := make([]string, len(created))
	for i, c := range created {
		nodes[i] = c.Path
	}
	return nodes
}

func (s *Semaphore) newPermitLease(ctx context.Context, sess *framework.Session, created []framework.Created) (*Lease, error) {
	nodes := paths(created)
	lease := &Lease{path: s.path, node: nodes[0], nodes: nodes, token: created[0].Zxid, session: sess, back: func(early bool) releaseProgress {
		r, _ := s.line.discardNodes(sess, early, nil, nodes...)
		return r
	}}
	if err := lease.standWithHold(ctx, nodes...); err != nil {
		return nil, err
	}
	return lease.startTimers(s.line.maxHold), nil
}

// findRoomNow finds room for n permits or does not wait.
func (s *Semaphore) findRoomNow(ctx context.Context, sess *framework.Session, n int) (permits, error) {
	p, err := s.permitLimit(ctx, n)
	if err != nil {
		return permits{}, err
	}
	names, _, err := sess.Children(ctx, s.leases)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return permits{}, err
	}
	if len(names)+n <= p.Permits {
		return p, nil
	}
	fresh, err := s.readPermitLimit(ctx) // somebody may have added some
	if err == nil && len(names)+n > fresh.Permits {
		err = ErrNotAcquired
	}
	return fresh, err
}

// waitForRoom waits until there is room for n permits.
func (s *Semaphore) waitForRoom(ctx context.Context, sess *framework.Session, n int) (permits, error) {
	p, err := s.findRoomNow(ctx, sess, n)
	if !errors.Is(err, ErrNotAcquired) {
		return p, err
	}
	if s.line.queued != nil { // the first in line waits for those that hold
		s.line.queued(0)
	}
	for {
		p, free, err := s.findRoomOrWait(ctx, sess, n)
		if free || err != nil {
			return p, err
		}
	}
}

// findRoomOrWait finds room, or waits until something has changed.
func (s *Semaphore) findRoomOrWait(ctx context.Context, sess *framework.Session, n int) (p permits, free bool, err error) {
	p, record, err := s.watchPermitCount(ctx, sess, n)
	if err != nil {
		return p, false, err
	}
	defer record.Stop()
	names, _, leases, err := sess.WatchChildren(ctx, s.leases)
	if errors.Is(err, framework.ErrNoNode) { // all were given back, and the server has removed the directory
		return p, true, nil
	}
	if err != nil {
		return p, false, err
	}
	defer leases.Stop()
	if len(names)+n <= p.Permits {
		return p, true, nil
	}
	return p, false, waitForEither(ctx, sess, leases, record)
}

// watchPermitCount reads the number of permits and watches it.
func (s *Semaphore) watchPermitCount(ctx context.Context, sess *framework.Session, n int) (permits, *framework.Watch, error) {
	data, st, w, err := sess.WatchData(ctx, s.record)
	if errors.Is(err, framework.ErrNoNode) { // somebody has deleted it
		s.rememberLimit(nil)
		if _, err = s.permitLimit(ctx, n); err == nil {
			return s.watchPermitCount(ctx, sess, n)
		}
	}
	if err != nil {
		return permits{}, nil, err
	}
	p, err := s.checkPermits(data, st)
	if err == nil {
		s.rememberLimit(&p)
		err = s.checkFits(p, n)
	}
	if err != nil {
		w.Stop()
	}
	return p, w, err
}

// waitForEither waits until one of two watches has seen something.
func waitForEither(ctx context.Context, sess *framework.Session, a, b *framework.Watch) error {
	select {
	case <-a.C():
		return nil
	case <-b.C():
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-sess.Done():
		return context.Cause(sess.Context())
	}
}
