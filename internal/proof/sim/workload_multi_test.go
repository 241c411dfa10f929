package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

func init() { newWorkload["multi"] = newMultiWorkload }

// multiWorkload is several locks, some of which actors acquire together.
type multiWorkload struct {
	workloadBase
	parts []*multiPart
}

// multiPart is one of the locks.
type multiPart struct {
	checker    *holdChecker
	newRequest func(*actor) lockRequest
}

func newMultiWorkload(sim *simulation, spec workloadSpec) workload {
	s := &multiWorkload{workloadBase: workloadBase{sim, spec}}
	add := func(name string, lock func(*actor, string) lockRequest) {
		path := spec.path + "/" + name
		p := &multiPart{checker: newHoldChecker(sim, spec.path, path),
			newRequest: func(a *actor) lockRequest { return lock(a, path) }}
		p.checker.unfenced = true // a multi-lock's token is the highest of its parts' tokens
		s.parts = append(s.parts, p)
	}
	mutex := func(a *actor, path string) lockRequest { return lockRequest{locker: locks.NewMutex(a.client, path)} }
	add("a", mutex)
	add("b", func(a *actor, path string) lockRequest { return lockRequest{locker: locks.NewClaim(a.client, path)} })
	add("c", func(a *actor, path string) lockRequest {
		if l := locks.NewRWLock(a.client, path); oneIn(a.rng, 2) {
			return lockRequest{locker: l.RLocker(), shared: true}
		} else {
			return lockRequest{locker: l}
		}
	})
	add("d", func(a *actor, path string) lockRequest {
		n := 1 + a.rng.IntN(2)
		return lockRequest{locker: locks.NewSemaphore(a.client, path, 3).Permits(n), permits: n,
			limit: func(int64) int { return 3 }}
	})
	add("e", func(a *actor, path string) lockRequest {
		return lockRequest{locker: locks.NewMutex(a.client, path, locks.WithMaxHold(500*time.Millisecond))}
	})
	return s
}

func (s *multiWorkload) holdCheckers() (all []*holdChecker) {
	for _, p := range s.parts {
		all = append(all, p.checker)
	}
	return all
}

func (s *multiWorkload) runActor(a *actor) {
	for a.nextStep() {
		s.lockAndRelease(a)
	}
}

// lockAndRelease acquires some of the locks together, holds and releases them.
func (s *multiWorkload) lockAndRelease(a *actor) {
	chosen := s.choose(a.rng)
	asks := make([]lockRequest, len(chosen))
	lockers := make([]locks.Locker, len(chosen))
	for i, p := range chosen {
		asks[i] = p.newRequest(a)
		lockers[i] = asks[i].locker
	}
	whole := lockRequest{locker: locks.NewMultiLock(lockers...), try: oneIn(a.rng, 5)}
	ctx, cancel := a.callContext()
	defer cancel()
	lease, err := whole.lock(ctx)
	late := a.waitWhileFrozen()
	if err != nil {
		s.sim.history.add(s.path(), "%s fails: %v", a.name, err)
		if !(whole.try && errors.Is(err, locks.ErrNotAcquired)) && !a.isExpectedError(ctx, err) {
			s.sim.addViolation(s.path(), "errors", "%s fails with %v", a.name, err)
		}
		return
	}
	a.sim.countOperation("multi")
	for i, p := range chosen {
		if late && lease.Err() != nil {
			break
		}
		h := asks[i].hold(a, lease)
		h.token = grantToken{lease.Token(), int64(a.sim.nextNumber())}
		p.checker.addGrant(h)
	}
	a.sleep(lease.Context(), pickOne(a.rng, 0, durationBetween(a.rng, 0, s.sim.plan.sessionTimeout/2)))
	s.sim.history.add(s.path(), "%s releases", a.name)
	end, cancel := a.callContext()
	defer cancel()
	_ = lease.Release(end)
}

// choose draws some of the locks, in random order.
func (s *multiWorkload) choose(r *rand.Rand) []*multiPart {
	chosen := append([]*multiPart(nil), s.parts...)
	r.Shuffle(len(chosen), func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
	return chosen[:1+r.IntN(len(chosen))]
}
