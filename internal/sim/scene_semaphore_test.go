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

func init() { makers["semaphore"] = newSemaphoreScene }

// semaphoreScene is a semaphore whose number of permits may change.
type semaphoreScene struct {
	*lockScene
	permits int
	resizes bool

	mu     sync.Mutex
	limits []limit

	eyes    sync.Mutex
	created map[string]int64 // nodes in line, and the transactions that made them
	last    int64            // that of the node that took permits last
}

// limit is a number of permits that may have held for some time.
type limit struct {
	n       int
	settled time.Time // when its Resize returned; zero: not yet
	over    time.Time // zero: it may hold still
}

func newSemaphoreScene(w *world, spec sceneSpec) scene {
	r := stream(w.plan.seed, spec.path)
	s := &semaphoreScene{lockScene: newLockScene(w, spec), permits: 1 + r.IntN(4), resizes: oneIn(r, 3), created: map[string]int64{}}
	s.drawOptions(r)
	s.book.unfenced = true
	s.lockScene.draw = s.ask
	s.limits = []limit{{n: s.permits, settled: time.Now()}}
	s.refuses = func(err error) bool { return s.resizes && errors.Is(err, locks.ErrPermits) }
	w.eye.watch(s.see)
	return s
}

// ask asks for permits, as many as there are at most, or changes their number before.
func (s *semaphoreScene) ask(a *actor) ask {
	sem := locks.NewSemaphore(a.client, s.path(), s.permits, s.options...)
	if s.resizes && oneIn(a.r, 8) {
		s.resize(a, sem)
	}
	n := 1 + a.r.IntN(s.permits)
	if oneIn(a.r, 2) {
		n = 1
	}
	began := time.Now()
	return ask{locker: sem.Permits(n), try: oneIn(a.r, 5), permits: n, limit: func() int { return s.most(began) }}
}

// resize changes the number of permits.
func (s *semaphoreScene) resize(a *actor, sem *locks.Semaphore) {
	n := 1 + a.r.IntN(5)
	asked := time.Now()
	s.mu.Lock()
	mine := len(s.limits)
	s.limits = append(s.limits, limit{n: n})
	s.mu.Unlock()
	ctx, cancel := a.patience()
	defer cancel()
	err := sem.Resize(ctx, n)
	a.gate()
	s.w.h.note(s.path(), "%s makes it %d permits: %s", a.name, n, outcome(err))
	if err != nil && !errors.Is(err, framework.ErrSessionLost) { // then the outcome is unknown
		s.checkError(a, ctx, ask{}, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[mine].settled = time.Now()
	for i := range s.limits[:mine] { // what had its outcome before this was begun cannot hold any more
		if l := &s.limits[i]; err == nil && l.settled.Before(asked) && !l.settled.IsZero() && l.over.IsZero() {
			l.over = time.Now()
		}
	}
}

// most is the largest number of permits that may have held since a moment.
func (s *semaphoreScene) most(since time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if l.over.IsZero() || !l.over.Before(since) {
			n = max(n, l.n)
		}
	}
	return n
}

// mayDelete allows for waiters' nodes.
func (s *semaphoreScene) mayDelete(node string) bool {
	return strings.HasPrefix(node, s.path()+"/locks/")
}

// see checks that permits are taken in the order in which nodes came into the line.
func (s *semaphoreScene) see(r zktest.Request) {
	if r.Err != 0 {
		return
	}
	s.eyes.Lock()
	defer s.eyes.Unlock()
	line := s.path() + "/locks/"
	if strings.HasPrefix(r.Result, line) {
		s.created[r.Result] = r.Zxid
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
	made := s.created[node]
	if made < s.last {
		go s.w.violate(s.path(), "order", "%s takes permits, which came before another one that has them", node)
	}
	s.last = max(s.last, made)
}
