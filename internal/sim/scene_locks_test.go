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
	"github.com/lockstep-go/lockstep/locks"
)

func init() {
	makers["mutex"] = newMutexScene
	makers["claim"] = newClaimScene
	makers["rwlock"] = newRWScene
}

// lockScene is one lock that actors ask for, work under and release.
type lockScene struct {
	base
	book     *ledger
	options  []locks.Option
	quick    bool // releases return early
	reentry  bool
	maxHold  time.Duration
	register string // where guarded writes go, or ""
	draw     func(a *actor) ask
	refuses  func(error) bool // errors that an ask may end with, or nil
}

// ask is one ask for a lock.
type ask struct {
	locker  locks.Locker
	try     bool
	shared  bool
	permits int
	// goOn lets a writer go on as a reader.
	goOn func(context.Context) (*locks.Lease, error)
	// limit is how many permits there may have been since the ask, or nil.
	limit func() int
}

func newLockScene(w *world, spec sceneSpec) *lockScene {
	return &lockScene{base: base{w, spec}, book: newLedger(w, spec.path, spec.path)}
}

func (s *lockScene) ledgers() []*ledger { return []*ledger{s.book} }

// newMutexScene is a mutex with random options. Its line's numbers are about to wrap in some.
func newMutexScene(w *world, spec sceneSpec) scene {
	s := newLockScene(w, spec)
	r := stream(w.plan.seed, spec.path)
	s.drawOptions(r)
	slice := time.Duration(0)
	switch {
	case oneIn(r, 4):
		slice = between(r, time.Millisecond, 3*time.Second)
		s.quick = true
		s.options = append(s.options, locks.WithLocalHandoff(slice))
	case oneIn(r, 3):
		s.reentry = true
		s.options = append(s.options, locks.WithReentry())
	}
	s.register = spec.path + "~register"
	s.draw = func(a *actor) ask {
		m := func() *locks.Mutex { return locks.NewMutex(a.client, spec.path, s.options...) }
		if slice > 0 {
			return ask{locker: local(a.process, spec.path, m), try: oneIn(a.r, 5)}
		}
		return ask{locker: m(), try: oneIn(a.r, 5)}
	}
	s.prepare(r)
	return s
}

// newClaimScene is a claim.
func newClaimScene(w *world, spec sceneSpec) scene {
	s := newLockScene(w, spec)
	r := stream(w.plan.seed, spec.path)
	s.drawOptions(r)
	s.book.unfenced = true
	s.register = spec.path + "~register"
	s.draw = func(a *actor) ask {
		return ask{locker: locks.NewClaim(a.client, spec.path+"/claim", s.options...), try: oneIn(a.r, 5)}
	}
	s.prepare(r)
	return s
}

// newRWScene is a read-write lock, whose writers may go on as readers.
func newRWScene(w *world, spec sceneSpec) scene {
	s := newLockScene(w, spec)
	r := stream(w.plan.seed, spec.path)
	s.drawOptions(r)
	s.register = spec.path + "~register"
	s.draw = func(a *actor) ask {
		l := locks.NewRWLock(a.client, spec.path, s.options...)
		if a.r.IntN(5) < 3 {
			return ask{locker: l.RLocker(), shared: true, try: oneIn(a.r, 5)}
		}
		return ask{locker: l, try: oneIn(a.r, 5), goOn: l.RLock}
	}
	s.prepare(r)
	return s
}

func (s *lockScene) drawOptions(r *rand.Rand) {
	if oneIn(r, 5) {
		s.quick = true
		s.options = append(s.options, locks.WithAsyncRelease())
	}
	if oneIn(r, 6) {
		s.maxHold = between(r, 10*time.Millisecond, 5*time.Second)
		s.options = append(s.options, locks.WithMaxHold(s.maxHold))
	}
}

// prepare makes the directories, as if they had been used for years.
func (s *lockScene) prepare(r *rand.Rand) {
	s.w.operate(func(ctx context.Context, c *framework.Client) error {
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
		return s.w.zk.Number(s.path(), int32(math.MaxInt32-r.IntN(20)))
	})
}

// mayDelete allows for nodes in the line. A claim's guard does not stand up to that.
func (s *lockScene) mayDelete(node string) bool {
	return strings.HasPrefix(node, s.path()) && s.register != "" && node != s.path() && !s.book.unfenced
}

func (s *lockScene) play(a *actor) {
	for a.goOn() {
		s.step(a)
	}
}

// step asks once, and works under what it is granted.
func (s *lockScene) step(a *actor) {
	q := s.draw(a)
	ctx, cancel := a.patience()
	defer cancel()
	lease, err := q.lock(ctx)
	late := a.gate()
	if err != nil {
		a.w.h.note(s.path(), "%s fails: %v", a.name, err)
		s.checkError(a, ctx, q, err)
		return
	}
	a.w.count(s.spec.recipe)
	if late && lease.Err() != nil {
		s.release(a, lease)
		return
	}
	h := q.hold(a, lease)
	s.book.granted(h)
	s.work(a, lease, h)
	if q.goOn != nil && oneIn(a.r, 3) {
		s.downgrade(a, q, lease)
		return
	}
	s.release(a, lease)
}

// downgrade goes on as one reader or two, and releases all leases in any order.
func (s *lockScene) downgrade(a *actor, q ask, lease *locks.Lease) {
	held := []*locks.Lease{lease}
	for range 1 + a.r.IntN(2) {
		reader, err := q.goOn(lease.Context())
		a.gate()
		s.w.h.note(s.path(), "%s goes on as a reader: %s", a.name, outcome(err))
		if err != nil {
			if lease.Err() == nil && !a.w.isDoomed(lease.Session(), lease.Node()) {
				s.w.violate(s.path(), "downgrade", "%s may not go on as a reader: %v", a.name, err)
			}
			break
		}
		if reader.Token() != lease.Token() {
			s.w.violate(s.path(), "downgrade", "%s goes on with token %d after %d", a.name, reader.Token(), lease.Token())
		}
		a.w.count("downgrade")
		held = append(held, reader)
	}
	if oneIn(a.r, 3) {
		a.r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	}
	for i, next := range held {
		s.release(a, next)
		if next == lease {
			for _, reader := range held[i+1:] {
				s.book.goesOn(ask{shared: true}.hold(a, reader))
			}
		}
		if i+1 < len(held) {
			a.rest(held[i+1].Context(), between(a.r, 0, time.Second))
		}
	}
}

func (q ask) lock(ctx context.Context) (*locks.Lease, error) {
	if q.try {
		return q.locker.TryLock(ctx)
	}
	return q.locker.Lock(ctx)
}

func (q ask) hold(a *actor, lease *locks.Lease) *hold {
	h := &hold{who: a, shared: q.shared, permits: q.permits, mark: mark{lease.Token(), lease.Turn()},
		session: lease.Session(), node: lease.Node(), ctx: lease.Context(), err: lease.Err}
	if q.permits > 0 {
		h.shared, h.limit = true, q.limit
	}
	return h
}

// checkError checks why an ask has failed.
func (s *lockScene) checkError(a *actor, ctx context.Context, q ask, err error) {
	if q.try && errors.Is(err, locks.ErrNotAcquired) || a.excused(ctx, err) || s.refuses != nil && s.refuses(err) {
		return
	}
	s.w.violate(s.path(), "errors", "%s fails with %v", a.name, err)
}

// work does things under a lease for some time, as one who looks at its context or one who does not.
func (s *lockScene) work(a *actor, lease *locks.Lease, h *hold) {
	until := lease.Context()
	if oneIn(a.r, 6) { // it is stubborn
		until = a.ctx
	}
	for range a.r.IntN(3) {
		a.rest(until, pick(a.r, 0, between(a.r, 0, 10*time.Millisecond), between(a.r, 0, time.Second), between(a.r, 0, s.w.plan.timeout)))
		if s.register != "" && !h.shared {
			s.write(a, lease)
		}
		if s.reentry && oneIn(a.r, 3) {
			s.nest(a, lease)
		}
	}
}

// write writes the token under the lease's guard. Whether the lease still stands is not looked at.
func (s *lockScene) write(a *actor, lease *locks.Lease) {
	ctx, cancel := a.patience()
	defer cancel()
	data := []byte(strconv.FormatInt(lease.Token(), 10))
	_, err := a.client.Multi(ctx, lease.Guard(), framework.CreateOp(s.register+"/w-", data, framework.PersistentSequential))
	a.gate()
	a.w.count("guarded write")
	a.w.h.note(s.path(), "%s writes under token %d: %s", a.name, lease.Token(), outcome(err))
	if err != nil && lease.Err() == nil && ctx.Err() == nil && !framework.IsTransient(err) && !a.w.isDoomed(lease.Session(), lease.Node()) {
		s.w.violate(s.path(), "guarded writes", "%s cannot write under a lease that stands: %v", a.name, err)
	}
}

// nest asks again under the lease's own context.
func (s *lockScene) nest(a *actor, lease *locks.Lease) {
	inner, err := s.draw(a).locker.Lock(lease.Context())
	a.gate()
	switch {
	case err != nil && lease.Err() == nil:
		s.w.violate(s.path(), "re-entry", "%s is refused under its own lease: %v", a.name, err)
	case err == nil && (inner.Token() != lease.Token() || inner.Node() != lease.Node()):
		s.w.violate(s.path(), "re-entry", "%s gets %s under %s", a.name, inner.Node(), lease.Node())
	case err == nil:
		a.rest(inner.Context(), between(a.r, 0, 20*time.Millisecond))
		_ = inner.Release(a.ctx)
	}
}

// release gives a lease back, and checks that it is gone when that was waited for.
func (s *lockScene) release(a *actor, lease *locks.Lease) {
	ctx, cancel := a.patience()
	defer cancel()
	s.w.h.note(s.path(), "%s releases token %d", a.name, lease.Token())
	_ = lease.Release(ctx)
	if lease.Context().Err() == nil || lease.Err() == nil {
		s.w.violate(s.path(), "released", "%s has released a lease, and it still stands", a.name)
	}
	if s.quick || ctx.Err() != nil || s.maxHold > 0 {
		return
	}
	if n, there := s.w.zk.Node(lease.Node()); there && n.Stat.Czxid == lease.Token() && a.hasSession(lease.Session()) {
		s.w.violate(s.path(), "released", "%s has released %s, and it is still there", a.name, lease.Node())
	}
}

func (s *lockScene) settled() {
	if s.register != "" {
		s.w.inOrder(s.path(), s.register)
	}
}

// inOrder checks that guarded writes were done in the order of their tokens.
func (w *world) inOrder(scene, register string) {
	last := int64(0)
	for _, name := range w.zk.Children(register) {
		n, _ := w.zk.Node(framework.Join(register, name))
		token, err := strconv.ParseInt(string(n.Data), 10, 64)
		if err != nil {
			panic(err)
		}
		if token < last {
			w.violate(scene, "guarded writes", "%s was written under token %d, after token %d", name, token, last)
		}
		last = max(last, token)
	}
}

// operate does something as the operator, before anybody plays.
func (w *world) operate(what func(context.Context, *framework.Client) error) {
	if err := what(context.Background(), w.operator); err != nil {
		panic(fmt.Sprint("the stage could not be set: ", err))
	}
}
