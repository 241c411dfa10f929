package sim

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func init() { newWorkload["semaphore"] = newSemaphoreWorkload }

// semaphoreWorkload is a semaphore whose number of permits may change.
type semaphoreWorkload struct {
	*lockWorkload
	permits int
	resizes bool

	mu     sync.Mutex
	limits []permitLimit

	lineMu      sync.Mutex
	createdAt   map[string]int64    // zxids of the contenders' nodes
	takenAt     map[int64]time.Time // when permits were taken, by the transaction
	lastGranted int64               // zxid of the node that was granted permits last
}

// permitLimit is a number of permits that may have been valid for some time.
type permitLimit struct {
	n       int
	settled time.Time // when its SetLimit returned; zero before
	until   time.Time // until when it may be valid; zero: it still may
}

func newSemaphoreWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	s := &semaphoreWorkload{lockWorkload: newLockWorkload(sim, spec), permits: 1 + r.IntN(4), resizes: oneIn(r, 3),
		createdAt: map[string]int64{}, takenAt: map[int64]time.Time{}}
	s.drawOptions(r)
	s.checker.unfenced = true
	s.lockWorkload.newRequest = s.newPermitRequest
	s.limits = []permitLimit{{n: s.permits, settled: time.Now()}}
	s.isExpected = func(err error) bool { return s.resizes && errors.Is(err, framework.ErrMismatch) }
	sim.observer.addHandler(s.checkGrantOrder)
	return s
}

// newPermitRequest requests at most as many permits as there are, and sometimes changes their
// number before.
func (s *semaphoreWorkload) newPermitRequest(a *actor) lockRequest {
	sem := locks.NewSemaphore(a.client, s.path(), s.permits, optionsAs[locks.SemaphoreOption](s.options)...)
	if s.resizes && oneIn(a.rng, 8) {
		s.resize(a, sem)
	}
	n := 1 + a.rng.IntN(s.permits)
	if oneIn(a.rng, 2) {
		n = 1
	}
	return lockRequest{locker: sem.Permits(n), try: oneIn(a.rng, 5), permits: n, limit: s.maxPermitsSinceTaken}
}

// resize changes the number of permits.
func (s *semaphoreWorkload) resize(a *actor, sem *locks.Semaphore) {
	n := 1 + a.rng.IntN(5)
	asked := time.Now()
	s.mu.Lock()
	mine := len(s.limits)
	s.limits = append(s.limits, permitLimit{n: n})
	s.mu.Unlock()
	ctx, cancel := a.callContext()
	defer cancel()
	err := sem.SetLimit(ctx, n)
	a.waitWhileFrozen()
	s.sim.history.add(s.path(), "%s resizes to %d permits: %s", a.name, n, outcome(err))
	if err != nil && !errors.Is(err, framework.ErrSessionLost) { // after a lost session the outcome is unknown
		s.checkError(a, ctx, lockRequest{}, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[mine].settled = time.Now()
	for i := range s.limits[:mine] { // an earlier SetLimit that had returned before this one began is no longer valid
		if l := &s.limits[i]; err == nil && l.settled.Before(asked) && !l.settled.IsZero() && l.until.IsZero() {
			l.until = time.Now()
		}
	}
}

// maxPermitsSinceTaken is the largest number of permits that may have been valid since a
// transaction took some. What a member saw before counts for nothing.
func (s *semaphoreWorkload) maxPermitsSinceTaken(token int64) int {
	s.lineMu.Lock()
	at := s.takenAt[token]
	s.lineMu.Unlock()
	return s.maxPermitsSince(at)
}

// maxPermitsSince is the largest number of permits that may have been valid since a moment.
func (s *semaphoreWorkload) maxPermitsSince(since time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if l.until.IsZero() || !l.until.Before(since) {
			n = max(n, l.n)
		}
	}
	return n
}

// mayBeDeleted allows waiters' nodes.
func (s *semaphoreWorkload) mayBeDeleted(node string) bool {
	return strings.HasPrefix(node, s.path()+"/locks/")
}

// checkGrantOrder checks that permits are granted in the order in which the nodes were created.
func (s *semaphoreWorkload) checkGrantOrder(r zktest.Request) {
	if r.Err != 0 {
		return
	}
	s.lineMu.Lock()
	defer s.lineMu.Unlock()
	line := s.path() + "/locks/"
	if strings.HasPrefix(r.Result, line) {
		s.createdAt[r.Result] = r.Zxid
	}
	takes, node := false, ""
	for _, part := range r.Parts {
		switch {
		case part.Err != 0:
			return
		case part.Op == zktest.OpDelete && strings.HasPrefix(part.Path, line):
			node = part.Path
		case strings.HasPrefix(part.Result, s.path()+"/leases/"):
			takes = true
		}
	}
	if !takes || node == "" {
		return
	}
	s.takenAt[r.Zxid] = time.Now()
	made := s.createdAt[node]
	if made < s.lastGranted {
		go s.sim.addViolation(s.path(), "order", "%s was granted permits after a node that was created later", node)
	}
	s.lastGranted = max(s.lastGranted, made)
}
