package sim

import (
	"errors"
	"maps"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/queue"
)

func init() { newWorkload["cancels"] = newQueueCancelsWorkload }

// newQueueCancelsWorkload is a queue with features whose items have ids and are cancelled.
func newQueueCancelsWorkload(sim *simulation, spec workloadSpec) workload {
	s, _ := newQueueFeaturesWorkload(sim, spec).(*queueWorkload)
	s.features.cancels = true
	return s
}

// cancelItem cancels an item that some actor has put, or is about to put. An item whose cancel has
// succeeded must not be delivered, and one whose cancel was refused must not be lost.
func (s *queueWorkload) cancelItem(a *actor) {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.items))
	if len(names) == 0 {
		s.mu.Unlock()
		return
	}
	i := s.items[names[max(len(names)-1-a.rng.IntN(8), 0)]]
	if oneIn(a.rng, 2) {
		i = s.items[names[a.rng.IntN(len(names))]]
	}
	confirmed := i.confirmed
	s.mu.Unlock()
	ctx, cancel := a.callContext()
	defer cancel()
	err := s.queue(a.process).Cancel(ctx, i.name)
	s.sim.history.add(s.path(), "%s cancels %s: %s", a.name, i.name, outcome(err))
	s.sim.countOperation("cancel")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		i.cancelled = true
		if i.acked {
			s.sim.addViolation(s.path(), "cancels", "%s was cancelled after it was acknowledged", i.name)
		}
	case errors.Is(err, queue.ErrTaken), errors.Is(err, queue.ErrDone):
	case errors.Is(err, framework.ErrNotFound):
		if confirmed {
			s.sim.addViolation(s.path(), "cancels", "%s was put, and %s is told that its id is unknown", i.name, a.name)
		}
	case errors.Is(err, framework.ErrOutcomeUnknown) || a.ctx.Err() != nil:
		i.mayBeCancelled = true
	case !failure.IsTransient(err) && !a.isExpectedError(ctx, err, framework.ErrClosed):
		s.sim.addViolation(s.path(), "errors", "%s cannot cancel: %v", a.name, err)
	}
}
