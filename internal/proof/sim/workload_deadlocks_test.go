package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

func init() { newWorkload["deadlocks"] = newDeadlocksWorkload }

// deadlocksWorkload is several locks of all kinds that actors nest in random order. The calls
// without a deadline end only if each deadlock is broken, and a request that fails must have been
// in one.
type deadlocksWorkload struct {
	workloadBase
	lockers map[string]func(*actor) locks.Locker // by path

	mu   sync.Mutex
	asks map[requestKey][]*trueRequest
}

// requestKey is how a request describes itself in a deadlock.
type requestKey struct {
	path, owner string
	since       int64
}

// trueRequest is a request and what it is made under.
type trueRequest struct {
	began, ended time.Time // ended is zero while it waits
	held         []*trueHold
	failed       *locks.DeadlockError
}

// trueHold is a hold as its owner knows it.
type trueHold struct {
	path        string
	from, until time.Time // until is zero while it stands
}

// deadlockLimit is how long a deadlock may last while there are no faults: a second until its last
// ask is recorded, and three more. Links may be slow: the asks need roundsOfDeadlock round trips at
// most for that.
const (
	deadlockLimit    = 4 * time.Second
	roundsOfDeadlock = 40
)

func newDeadlocksWorkload(sim *simulation, spec workloadSpec) workload {
	s := &deadlocksWorkload{workloadBase: workloadBase{sim, spec}, lockers: map[string]func(*actor) locks.Locker{},
		asks: map[requestKey][]*trueRequest{}}
	r := newRand(sim.plan.seed, spec.path)
	kinds := []func(path string) func(*actor) locks.Locker{
		func(path string) func(*actor) locks.Locker {
			return func(a *actor) locks.Locker { return locks.NewMutex(a.client, path) }
		},
		func(path string) func(*actor) locks.Locker {
			return func(a *actor) locks.Locker { return locks.NewClaim(a.client, path) }
		},
		func(path string) func(*actor) locks.Locker {
			return func(a *actor) locks.Locker {
				l := locks.NewRWLock(a.client, path)
				if oneIn(a.rng, 2) {
					return l.RLocker()
				}
				return l
			}
		},
		func(path string) func(*actor) locks.Locker {
			return func(a *actor) locks.Locker { return locks.NewSemaphore(a.client, path, simPermits) }
		},
		func(path string) func(*actor) locks.Locker {
			return func(a *actor) locks.Locker {
				return processLocal(a.process, path,
					func() *locks.Mutex { return locks.NewMutex(a.client, path, locks.WithLocalHandoff(time.Second)) })
			}
		},
	}
	for i := range 2 + r.IntN(3) {
		kind := 0
		if oneIn(r, 2) {
			kind = r.IntN(len(kinds))
		}
		path := fmt.Sprintf("%s/%c%d", spec.path, "mcrsh"[kind], i)
		s.lockers[path] = kinds[kind](path)
	}
	return s
}

const simPermits = 2

func (s *deadlocksWorkload) runActor(a *actor) {
	for a.nextStep() {
		ctx, cancel := a.callContext()
		s.nest(a, ctx, nil)
		cancel()
	}
}

// nest acquires a random lock that the caller does not hold, and perhaps others under it.
func (s *deadlocksWorkload) nest(a *actor, ctx context.Context, held []*trueHold) {
	paths := make([]string, 0, len(s.lockers))
	for path := range s.lockers {
		if !slices.ContainsFunc(held, func(h *trueHold) bool { return h.path == path }) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	if len(paths) == 0 {
		return
	}
	path := pickOne(a.rng, paths...)
	lease, err := s.lock(a, ctx, path, held)
	a.waitWhileFrozen()
	if err != nil {
		s.sim.history.add(s.path(), "%s is not granted %s: %v", a.name, path, err)
		if !a.isExpectedError(ctx, err, locks.ErrDeadlock) {
			s.sim.addViolation(s.path(), "errors", "%s asks for %s: %v", a.name, path, err)
		}
		return
	}
	s.sim.countOperation("nested lock")
	s.sim.history.add(s.path(), "%s holds %s", a.name, path)
	hold := &trueHold{path: path, from: time.Now()}
	stop := context.AfterFunc(lease.Context(), func() { s.endHold(hold) })
	carried := locks.HeldLocks(lease.Context())
	defer func() {
		_ = stop()
		s.endHold(hold)
		end, cancel := a.callContext()
		defer cancel()
		s.sim.history.add(s.path(), "%s releases %s", a.name, path)
		err := lease.Release(end)
		if err == nil && len(held) == 0 && a.hasSession(int64(lease.Session())) && oneIn(a.rng, 4) { // its node is gone
			s.askWithStaleHolds(a, carried)
		}
	}()
	a.sleep(lease.Context(), pickOne(a.rng, 0, durationBetween(a.rng, 0, time.Second)))
	if len(held) < 2 && !oneIn(a.rng, 4) {
		inner, cancel := context.WithCancel(lease.Context())
		defer context.AfterFunc(a.ctx, cancel)() // the lease's context outlasts that
		switch a.rng.IntN(6) {
		case 0:
			inner, cancel = context.WithTimeout(inner, durationBetween(a.rng, 0, 4*time.Second))
		case 1:
			a.afterRequests(1+a.rng.IntN(12), cancel)
		}
		s.nest(a, inner, append(held[:len(held):len(held)], hold))
		cancel()
	}
}

// askWithStaleHolds asks for a lock like a process that was told of locks that are released by now.
func (s *deadlocksWorkload) askWithStaleHolds(a *actor, carried string) {
	ctx, err := locks.WithHeldLocks(a.ctx, carried)
	if err != nil {
		s.sim.addViolation(s.path(), "errors", "%s cannot tell what it holds: %v", a.name, err)
		return
	}
	path := pickOne(a.rng, slices.Sorted(maps.Keys(s.lockers))...)
	ctx, cancel := context.WithTimeout(ctx, durationBetween(a.rng, time.Second, 6*time.Second))
	defer cancel()
	lease, err := s.lock(a, ctx, path, nil)
	if err == nil {
		a.sleep(lease.Context(), durationBetween(a.rng, 0, 100*time.Millisecond))
		_ = lease.Release(a.ctx)
	} else if !a.isExpectedError(ctx, err) {
		s.sim.addViolation(s.path(), "no false alarm", "%s asks for %s with a stale list of holds: %v",
			a.name, path, err)
	}
}

func (s *deadlocksWorkload) endHold(h *trueHold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.until.IsZero() {
		h.until = time.Now()
	}
}

// lock asks, and checks a failure by a deadlock.
func (s *deadlocksWorkload) lock(a *actor, ctx context.Context, path string, held []*trueHold) (*locks.Lease, error) {
	ask := &trueRequest{began: time.Now(), held: held}
	key := requestKey{path, a.client.Config().Identity, ask.began.UnixNano()}
	s.mu.Lock()
	s.asks[key] = append(s.asks[key], ask)
	s.mu.Unlock()
	lease, err := s.lockers[path](a).Lock(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	ask.ended = time.Now()
	var found *locks.DeadlockError
	if errors.As(err, &found) {
		ask.failed = found
		s.sim.countOperation("deadlock")
		s.checkDeadlock(a, ask, found)
	}
	return lease, err
}

// checkDeadlock checks a deadlock by which a request has failed. s.mu is held.
func (s *deadlocksWorkload) checkDeadlock(a *actor, failed *trueRequest, found *locks.DeadlockError) {
	wrong := func(rule, format string, args ...any) {
		s.sim.addViolation(s.path(), rule, "%s fails with %v: %s", a.name, found, fmt.Sprintf(format, args...))
	}
	asks := make([]*trueRequest, len(found.Cycle))
	var moment time.Time // when all of them waited
	for i, d := range found.Cycle {
		same := s.asks[requestKey{d.Path, d.Owner, d.Since.UnixNano()}]
		if len(same) == 0 {
			wrong("no false alarm", "there is no request %v", d)
			return
		}
		asks[i] = same[0]
		var latest time.Time
		for _, other := range same { // several goroutines at one moment
			ended := other.ended
			if ended.IsZero() {
				ended = time.Now()
			}
			switch {
			case other == failed:
				asks[i], latest = other, time.Now().Add(time.Hour)
			case len(same) > 1 && !slices.Contains(asks[:i], other) && holdsAll(other, d.Holds) &&
				!ended.Before(latest):
				// the one that waited longest
				asks[i], latest = other, ended
			}
		}
		if asks[i].began.After(moment) {
			moment = asks[i].began
		}
		if d.Number > found.Cycle[0].Number {
			wrong("the youngest fails", "%v is younger", d)
		}
		if other := asks[i]; other != failed && other.failed != nil &&
			slices.ContainsFunc(other.failed.Cycle,
				func(o locks.DeadlockedRequest) bool { return o.Number == found.Cycle[0].Number }) {
			wrong("one ask fails", "%v has failed too", d)
		}
	}
	for i, d := range found.Cycle {
		if asks[i] != failed && !asks[i].ended.IsZero() && asks[i].ended.Before(moment) {
			wrong("no false alarm", "%v has ended before the last of them began", d)
		}
		holds := 0
		for _, other := range asks {
			for _, h := range other.held {
				if h.path == d.Path && (h.until.IsZero() || !h.until.Before(moment)) {
					holds++
				}
			}
		}
		if need := map[bool]int{true: simPermits, false: 1}[s.kindOf(d.Path) == 's']; holds < need {
			wrong("no false alarm", "%s is not held by them", d.Path)
		}
	}
	if first := s.sim.plan.faults; len(first) == 0 || s.sim.history.began.Add(first[0].at).After(time.Now()) {
		limit := deadlockLimit
		for _, p := range s.sim.liveProcesses() {
			limit = max(limit, deadlockLimit+2*roundsOfDeadlock*p.delays[0])
		}
		if took := time.Since(moment); took > limit {
			wrong("deadlocks end", "it took %v, and %v are allowed", took, limit)
		}
	}
}

func holdsAll(a *trueRequest, paths []string) bool {
	for _, p := range paths {
		if !slices.ContainsFunc(a.held, func(h *trueHold) bool { return h.path == p }) {
			return false
		}
	}
	return true
}

// kindOf is the letter of a lock's kind.
func (s *deadlocksWorkload) kindOf(path string) byte { return path[len(s.path())+1] }
