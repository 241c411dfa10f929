package sim

import (
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
)

func init() { makers["barrier"] = newBarrierScene }

// barrierScene is a double barrier with as many members as there are actors.
type barrierScene struct {
	base
	members int

	mu     sync.Mutex
	last   int64
	inside map[*barrier.Round]*actor
	rounds map[int64]int // how many have entered each
}

func newBarrierScene(w *world, spec sceneSpec) scene {
	return &barrierScene{base: base{w, spec}, members: w.plan.processes * spec.actors, inside: map[*barrier.Round]*actor{}, rounds: map[int64]int{}}
}

func (s *barrierScene) play(a *actor) {
	b := barrier.NewDoubleBarrier(a.client, s.path(), s.members)
	for a.goOn() {
		s.round(a, b)
	}
}

// round is one round, or a try of one. A member that waits when the program is over gives up, since the others
// may have gone.
func (s *barrierScene) round(a *actor, b *barrier.DoubleBarrier) {
	ctx, cancel := a.patience()
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-a.w.over:
			cancel()
		case <-stop:
		}
	}()
	r, err := b.Enter(ctx)
	late := a.gate()
	if err != nil {
		s.failed(a, "enter", err, a.excused(ctx, err, barrier.ErrTooMany) || framework.IsTransient(err))
		return
	}
	if !late || r.Err() == nil {
		s.entered(a, r)
	}
	a.rest(r.Context(), pick(a.r, 0, between(a.r, 0, time.Second)))
	s.leave(a, r)
}

func (s *barrierScene) failed(a *actor, what string, err error, excused bool) {
	s.w.h.note(s.path(), "%s cannot %s: %v", a.name, what, err)
	if !excused && a.ctx.Err() == nil && !errors.Is(err, barrier.ErrTooMany) {
		s.w.violate(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// entered checks that no other round is inside, as far as its living members can tell.
func (s *barrierScene) entered(a *actor, r *barrier.Round) {
	s.w.count("round")
	s.w.h.note(s.path(), "%s is inside round %d", a.name, r.Number())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds[r.Number()]++; s.rounds[r.Number()] > s.members {
		s.w.violate(s.path(), "rounds", "round %d has %d members of %d", r.Number(), s.rounds[r.Number()], s.members)
	}
	if r.Number() < s.last && !over(r.Context()) && s.counts(a) {
		s.w.violate(s.path(), "rounds", "%s enters round %d after round %d has begun", a.name, r.Number(), s.last)
	}
	s.last = max(s.last, r.Number())
	for other, who := range s.inside {
		if other.Number() != r.Number() && !over(other.Context()) && !over(r.Context()) && s.counts(who) && s.counts(a) {
			s.w.violate(s.path(), "rounds", "%s enters round %d while %s is inside round %d", a.name, r.Number(), who.name, other.Number())
		}
	}
	s.inside[r] = a
}

// counts tells members whose process runs, and that no operator has thrown out.
func (s *barrierScene) counts(a *actor) bool {
	return !a.frozen() && !s.w.isDoomedProcess(a.process)
}

// leave leaves, and checks that nobody is inside any more once it is done.
func (s *barrierScene) leave(a *actor, r *barrier.Round) {
	s.mu.Lock()
	delete(s.inside, r)
	s.mu.Unlock()
	stands := r.Err() == nil
	ctx, cancel := a.patience()
	defer cancel()
	err := r.Leave(ctx)
	a.gate()
	if err != nil {
		s.failed(a, "leave", err, a.excused(ctx, err) || framework.IsTransient(err) || !stands)
		return
	}
	s.w.h.note(s.path(), "%s has left round %d", a.name, r.Number())
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, who := range s.inside {
		if other.Number() == r.Number() && !over(other.Context()) && s.counts(who) {
			s.w.violate(s.path(), "rounds", "%s has left round %d, and %s is inside", a.name, r.Number(), who.name)
		}
	}
}
