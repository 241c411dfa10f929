package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

func init() {
	newWorkload["mutex"] = newMutexWorkload
	newWorkload["claim"] = newClaimWorkload
	newWorkload["rwlock"] = newRWLockWorkload
}

// lockWorkload is one lock that actors acquire, hold and release.
type lockWorkload struct {
	workloadBase
	checker      *holdChecker
	options      []locks.Option
	asyncRelease bool // releases return before the node is deleted
	reentry      bool
	maxHold      time.Duration
	register     string // the directory of guarded writes, or ""
	newRequest   func(a *actor) lockRequest
	isExpected   func(error) bool // reports expected errors of a request; may be nil
}

// lockRequest is one request for a lock.
type lockRequest struct {
	locker  locks.Locker
	try     bool
	shared  bool
	permits int
	// goOn lets a writer go on as a reader.
	downgrade func(context.Context) (*locks.Lease, error)
	// limit returns the maximum number of permits since the transaction that has this number; may
	// be nil
	limit func(token int64) int
}

func newLockWorkload(sim *simulation, spec workloadSpec) *lockWorkload {
	return &lockWorkload{workloadBase: workloadBase{sim, spec}, checker: newHoldChecker(sim, spec.path, spec.path)}
}

func (s *lockWorkload) holdCheckers() []*holdChecker { return []*holdChecker{s.checker} }

// newMutexWorkload is a mutex with random options. In some seeds its sequence numbers are about to
// wrap.
func newMutexWorkload(sim *simulation, spec workloadSpec) workload {
	s := newLockWorkload(sim, spec)
	r := newRand(sim.plan.seed, spec.path)
	s.drawOptions(r)
	options := optionsAs[locks.MutexOption](s.options)
	slice := time.Duration(0)
	switch {
	case oneIn(r, 4):
		slice = durationBetween(r, time.Millisecond, 3*time.Second)
		s.asyncRelease = true
		options = append(options, locks.WithLocalHandoff(slice))
	case oneIn(r, 3):
		s.reentry = true
		options = append(options, locks.WithReentry())
	}
	s.register = spec.path + "~register"
	s.newRequest = func(a *actor) lockRequest {
		m := func() *locks.Mutex { return locks.NewMutex(a.client, spec.path, options...) }
		if slice > 0 {
			return lockRequest{locker: processLocal(a.process, spec.path, m), try: oneIn(a.rng, 5)}
		}
		return lockRequest{locker: m(), try: oneIn(a.rng, 5)}
	}
	s.prepare(r)
	return s
}

// newClaimWorkload is a claim.
func newClaimWorkload(sim *simulation, spec workloadSpec) workload {
	s := newLockWorkload(sim, spec)
	r := newRand(sim.plan.seed, spec.path)
	s.drawOptions(r)
	s.checker.unfenced = true
	s.register = spec.path + "~register"
	s.newRequest = func(a *actor) lockRequest {
		return lockRequest{locker: locks.NewClaim(a.client, spec.path+"/claim",
			optionsAs[locks.ClaimOption](s.options)...), try: oneIn(a.rng, 5)}
	}
	s.prepare(r)
	return s
}

// newRWLockWorkload is a read-write lock whose writers may downgrade.
func newRWLockWorkload(sim *simulation, spec workloadSpec) workload {
	s := newLockWorkload(sim, spec)
	r := newRand(sim.plan.seed, spec.path)
	s.drawOptions(r)
	s.register = spec.path + "~register"
	s.newRequest = func(a *actor) lockRequest {
		l := locks.NewRWLock(a.client, spec.path, optionsAs[locks.RWLockOption](s.options)...)
		if a.rng.IntN(5) < 3 {
			return lockRequest{locker: l.RLocker(), shared: true, try: oneIn(a.rng, 5)}
		}
		return lockRequest{locker: l, try: oneIn(a.rng, 5), downgrade: l.RLock}
	}
	s.prepare(r)
	return s
}

// optionsAs returns options as those of one kind of lock.
func optionsAs[To any](options []locks.Option) []To {
	as := make([]To, len(options))
	for i, o := range options {
		as[i] = any(o).(To)
	}
	return as
}

func (s *lockWorkload) drawOptions(r *rand.Rand) {
	if oneIn(r, 5) {
		s.asyncRelease = true
		s.options = append(s.options, locks.WithAsyncRelease())
	}
	if oneIn(r, 6) {
		s.maxHold = durationBetween(r, 10*time.Millisecond, 5*time.Second)
		s.options = append(s.options, locks.WithMaxHold(s.maxHold))
	}
}

// prepare makes the directories. In some seeds their sequence numbers are about to wrap.
func (s *lockWorkload) prepare(r *rand.Rand) {
	s.sim.asOperator(func(ctx context.Context, c *framework.Client) error {
		if s.register != "" {
			if err := c.Create(ctx, s.register, nil, framework.Persistent); err != nil {
				return err
			}
		}
		if !oneIn(r, 3) {
			return nil
		}
		if err := c.MakeDirs(ctx, s.path()); err != nil {
			return err
		}
		return s.sim.zk.Number(s.path(), int32(math.MaxInt32-r.IntN(20)))
	})
}

// mayBeDeleted allows contenders' nodes. A claim's guard does not protect against their deletion.
func (s *lockWorkload) mayBeDeleted(node string) bool {
	return strings.HasPrefix(node, s.path()) && s.register != "" && node != s.path() && !s.checker.unfenced
}

func (s *lockWorkload) runActor(a *actor) {
	for a.nextStep() {
		s.lockAndRelease(a)
	}
}

// lockAndRelease requests the lock once, and works under the lease.
func (s *lockWorkload) lockAndRelease(a *actor) {
	request := s.newRequest(a)
	ctx, cancel := a.callContext()
	defer cancel()
	lease, err := request.lock(ctx)
	late := a.waitWhileFrozen()
	if err != nil {
		a.sim.history.add(s.path(), "%s fails: %v", a.name, err)
		s.checkError(a, ctx, request, err)
		return
	}
	a.sim.countOperation(s.spec.recipe)
	if late && lease.Err() != nil {
		s.release(a, lease)
		return
	}
	h := request.hold(a, lease)
	s.checker.addGrant(h)
	s.work(a, lease, h)
	if request.downgrade != nil && oneIn(a.rng, 3) {
		s.downgrade(a, request, lease)
		return
	}
	s.release(a, lease)
}

// downgrade takes one read lease or two under a writer's lease, and releases all leases in any
// order.
func (s *lockWorkload) downgrade(a *actor, request lockRequest, lease *locks.Lease) {
	held := []*locks.Lease{lease}
	for range 1 + a.rng.IntN(2) {
		reader, err := request.downgrade(lease.Context())
		a.waitWhileFrozen()
		s.sim.history.add(s.path(), "%s downgrades: %s", a.name, outcome(err))
		if err != nil {
			if lease.Err() == nil && !a.sim.isEndedByOperator(lease.Session(), lease.Node()) {
				s.sim.addViolation(s.path(), "downgrade", "%s cannot downgrade: %v", a.name, err)
			}
			break
		}
		if reader.Token() != lease.Token() {
			s.sim.addViolation(s.path(), "downgrade", "%s was downgraded to token %d from %d", a.name, reader.Token(),
				lease.Token())
		}
		a.sim.countOperation("downgrade")
		held = append(held, reader)
	}
	if oneIn(a.rng, 3) {
		a.rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	}
	for i, next := range held {
		s.release(a, next)
		if next == lease {
			for _, reader := range held[i+1:] {
				s.checker.addDowngraded(lockRequest{shared: true}.hold(a, reader))
			}
		}
		if i+1 < len(held) {
			a.sleep(held[i+1].Context(), durationBetween(a.rng, 0, time.Second))
		}
	}
}

func (request lockRequest) lock(ctx context.Context) (*locks.Lease, error) {
	if request.try {
		return request.locker.TryLock(ctx)
	}
	return request.locker.Lock(ctx)
}

func (request lockRequest) hold(a *actor, lease *locks.Lease) *hold {
	h := &hold{holder: a, shared: request.shared, permits: request.permits,
		token:   grantToken{lease.Token(), lease.Turn()},
		session: lease.Session(), node: lease.Node(), ctx: lease.Context(), err: lease.Err}
	if request.permits > 0 {
		h.shared, h.limit = true, request.limit
	}
	return h
}

// checkError checks why a request has failed.
func (s *lockWorkload) checkError(a *actor, ctx context.Context, request lockRequest, err error) {
	if request.try && errors.Is(err, locks.ErrNotAcquired) || a.isExpectedError(ctx, err) ||
		s.isExpected != nil && s.isExpected(err) {
		return
	}
	s.sim.addViolation(s.path(), "errors", "%s fails with %v", a.name, err)
}

// work holds a lease for some time. Some actors ignore the end of its context.
func (s *lockWorkload) work(a *actor, lease *locks.Lease, h *hold) {
	until := lease.Context()
	if oneIn(a.rng, 6) { // it ignores the end of the lease
		until = a.ctx
	}
	longest := s.sim.plan.sessionTimeout
	if a.minPause > 0 { // so long that a session would fall asleep
		longest *= 3
	}
	if a.hold > 0 && oneIn(a.rng, 2) {
		a.sleep(until, a.hold)
	}
	if a.hold > 0 && a.minPause == 0 {
		longest = a.hold
	}
	for range a.rng.IntN(3) {
		a.sleep(until, pickOne(a.rng, 0, durationBetween(a.rng, 0, 10*time.Millisecond),
			durationBetween(a.rng, 0, time.Second), durationBetween(a.rng, 0, longest)))
		if s.register != "" && !h.shared {
			s.write(a, lease)
		}
		if s.reentry && oneIn(a.rng, 3) {
			s.reenter(a, lease)
		}
	}
}

// write writes the token under the lease's guard, without a check of the lease.
func (s *lockWorkload) write(a *actor, lease *locks.Lease) {
	ctx, cancel := a.callContext()
	defer cancel()
	data := []byte(strconv.FormatInt(lease.Token(), 10))
	_, err := a.client.Multi(ctx, lease.Guard(),
		framework.CreateOp(s.register+"/w-", data, framework.PersistentSequential))
	a.waitWhileFrozen()
	a.sim.countOperation("guarded write")
	a.sim.history.add(s.path(), "%s writes under token %d: %s", a.name, lease.Token(), outcome(err))
	if err != nil && lease.Err() == nil && ctx.Err() == nil && !failure.IsTransient(err) &&
		!a.sim.isEndedByOperator(lease.Session(), lease.Node()) {
		s.sim.addViolation(s.path(), "guarded writes", "%s cannot write under a lease that has not ended: %v", a.name,
			err)
	}
}

// reenter requests the lock again under the lease's own context.
func (s *lockWorkload) reenter(a *actor, lease *locks.Lease) {
	inner, err := s.newRequest(a).locker.Lock(lease.Context())
	a.waitWhileFrozen()
	switch {
	case err != nil && lease.Err() == nil:
		s.sim.addViolation(s.path(), "re-entry", "%s is refused under its own lease: %v", a.name, err)
	case err == nil && (inner.Token() != lease.Token() || inner.Node() != lease.Node()):
		s.sim.addViolation(s.path(), "re-entry", "%s gets %s under %s", a.name, inner.Node(), lease.Node())
	case err == nil:
		a.sleep(inner.Context(), durationBetween(a.rng, 0, 20*time.Millisecond))
		_ = inner.Release(a.ctx)
	}
}

// release releases a lease, and checks that its node is gone if the servers have confirmed that.
func (s *lockWorkload) release(a *actor, lease *locks.Lease) {
	ctx, cancel := a.callContext()
	defer cancel()
	s.sim.history.add(s.path(), "%s releases token %d", a.name, lease.Token())
	err := lease.Release(ctx)
	if lease.Context().Err() == nil || lease.Err() == nil {
		s.sim.addViolation(s.path(), "released", "%s has released a lease that has not ended", a.name)
	}
	if err != nil && !errors.Is(err, framework.ErrUnconfirmed) {
		s.sim.addViolation(s.path(), "errors", "%s cannot release: %v", a.name, err)
	}
	if s.asyncRelease || err != nil || s.maxHold > 0 {
		return
	}
	if n, there := s.sim.zk.Node(lease.Node()); there && n.Stat.Czxid == lease.Token() &&
		a.hasSession(int64(lease.Session())) {
		s.sim.addViolation(s.path(), "released", "%s has released %s, which still exists", a.name, lease.Node())
	}
}

func (s *lockWorkload) checkAtEnd() {
	if s.register != "" {
		s.sim.checkWriteOrder(s.path(), s.register)
	}
}

// checkWriteOrder checks that guarded writes were done in the order of their tokens.
func (sim *simulation) checkWriteOrder(scene, register string) {
	last := int64(0)
	for _, name := range sim.zk.Children(register) {
		n, _ := sim.zk.Node(znode.Join(register, name))
		token, err := strconv.ParseInt(string(n.Data), 10, 64)
		if err != nil {
			panic(err)
		}
		if token < last {
			sim.addViolation(scene, "guarded writes", "%s was written under token %d, after token %d",
				name, token, last)
		}
		last = max(last, token)
	}
}

// asOperator prepares the ensemble before the actors start.
func (sim *simulation) asOperator(what func(context.Context, *framework.Client) error) {
	if err := what(context.Background(), sim.operator); err != nil {
		panic(fmt.Sprint("the preparation failed: ", err))
	}
}
