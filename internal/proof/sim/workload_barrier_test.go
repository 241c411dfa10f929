package sim

import (
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/internal/failure"
)

func init() { newWorkload["barrier"] = newBarrierWorkload }

// barrierWorkload is a double barrier with as many members as there are actors.
type barrierWorkload struct {
	workloadBase
	members int

	mu        sync.Mutex
	lastRound int64
	inside    map[*barrier.Round]*actor
	rounds    map[int64]int // number of members that have entered, by round
}

func newBarrierWorkload(sim *simulation, spec workloadSpec) workload {
	return &barrierWorkload{workloadBase: workloadBase{sim, spec}, members: sim.plan.processes * spec.actors,
		inside: map[*barrier.Round]*actor{}, rounds: map[int64]int{}}
}

func (s *barrierWorkload) runActor(a *actor) {
	b := barrier.NewDoubleBarrier(a.client, s.path(), s.members)
	for a.nextStep() {
		s.enterAndLeave(a, b)
	}
}

// enterAndLeave runs one round, or a part of it. A member that waits at the end of the program
// gives up, because the others may have finished.
func (s *barrierWorkload) enterAndLeave(a *actor, b *barrier.DoubleBarrier) {
	ctx, cancel := a.callContext()
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-a.sim.programEnd:
			cancel()
		case <-stop:
		}
	}()
	r, err := b.Enter(ctx)
	late := a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, "enter", err, a.isExpectedError(ctx, err, barrier.ErrTooMany) || failure.IsTransient(err))
		return
	}
	if !late || r.Err() == nil {
		s.checkEntered(a, r)
	}
	a.sleep(r.Context(), pickOne(a.rng, 0, durationBetween(a.rng, 0, time.Second)))
	s.leave(a, r)
}

func (s *barrierWorkload) checkError(a *actor, what string, err error, excused bool) {
	s.sim.history.add(s.path(), "%s cannot %s: %v", a.name, what, err)
	if !excused && a.ctx.Err() == nil && !errors.Is(err, barrier.ErrTooMany) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// checkEntered checks that no live member is inside another round.
func (s *barrierWorkload) checkEntered(a *actor, r *barrier.Round) {
	s.sim.countOperation("round")
	s.sim.history.add(s.path(), "%s is inside round %d", a.name, r.Number())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds[r.Number()]++; s.rounds[r.Number()] > s.members {
		s.sim.addViolation(s.path(), "rounds", "round %d has %d members of %d", r.Number(), s.rounds[r.Number()],
			s.members)
	}
	if r.Number() < s.lastRound && !hasEnded(r.Context()) && s.isLive(a) {
		s.sim.addViolation(s.path(), "rounds", "%s enters round %d after round %d has begun", a.name,
			r.Number(), s.lastRound)
	}
	s.lastRound = max(s.lastRound, r.Number())
	for other, member := range s.inside {
		if other.Number() != r.Number() && !hasEnded(other.Context()) && !hasEnded(r.Context()) && s.isLive(member) &&
			s.isLive(a) {
			s.sim.addViolation(s.path(), "rounds", "%s enters round %d while %s is inside round %d", a.name, r.Number(),
				member.name, other.Number())
		}
	}
	s.inside[r] = a
}

// isLive reports whether a member's process runs, and no operator has ended its session.
func (s *barrierWorkload) isLive(a *actor) bool {
	return !a.frozen() && !s.sim.isHitByOperator(a.process)
}

// leave leaves the round, and checks that no live member is inside it afterwards.
func (s *barrierWorkload) leave(a *actor, r *barrier.Round) {
	s.mu.Lock()
	delete(s.inside, r)
	s.mu.Unlock()
	alive := r.Err() == nil
	ctx, cancel := a.callContext()
	defer cancel()
	err := r.Leave(ctx)
	a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, "leave", err, a.isExpectedError(ctx, err) || failure.IsTransient(err) || !alive)
		return
	}
	s.sim.history.add(s.path(), "%s has left round %d", a.name, r.Number())
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, member := range s.inside {
		if other.Number() == r.Number() && !hasEnded(other.Context()) && s.isLive(member) {
			s.sim.addViolation(s.path(), "rounds", "%s has left round %d while %s is still inside", a.name,
				r.Number(), member.name)
		}
	}
}
