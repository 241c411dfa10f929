package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/queue"
)

// queueFeatures are the rules of a queue whose items have priorities and delays, and that has a
// capacity, attempts, pauses and purges. It is nil in a workload without them.
type queueFeatures struct {
	attempts     int // 0: any number
	capacity     int // 0: no bound
	failWhenFull bool
	cancels      bool // items have ids, and are cancelled

	// Guarded by the scene's mutex.
	pausedSince    time.Time // since when the queue is surely paused; zero if unknown
	resuming       int       // calls of Resume that have not returned
	uncertainUntil time.Time // until when a failed Resume may still be carried out
}

// itemFeatures is the state of an item beside that of item.
type itemFeatures struct {
	priority    int
	due         time.Time // not to be delivered before; zero without a delay
	purged      bool      // it was in the queue before a purge that has succeeded
	mayBePurged bool      // a purge began after the start of its put

	cancelled      bool // a Cancel of it has succeeded
	mayBeCancelled bool // the outcome of a Cancel is unknown
}

// newQueueFeaturesWorkload is a queue with these features.
func newQueueFeaturesWorkload(sim *simulation, spec workloadSpec) workload {
	s, _ := newQueueWorkload(sim, spec).(*queueWorkload)
	r := newRand(sim.plan.seed, "lines "+spec.path)
	s.features = &queueFeatures{attempts: pickOne(r, 0, 2+r.IntN(5)), capacity: pickOne(r, 0, 0, 3+r.IntN(40)),
		failWhenFull: oneIn(r, 2)}
	return s
}

// options returns the options of a process's queue. Parallel consumers may have many deliveries in
// flight.
func (f *queueFeatures) options(r *rand.Rand, order queue.Order) (options []queue.Option) {
	if f == nil {
		return nil
	}
	if f.attempts > 0 {
		options = append(options, queue.WithMaxAttempts(f.attempts))
	}
	if f.capacity > 0 {
		options = append(options, queue.WithCapacity(f.capacity))
	}
	if f.failWhenFull {
		options = append(options, queue.WithFailWhenFull())
	}
	if f.cancels {
		options = append(options, queue.WithDedup(24*time.Hour))
	}
	if order == queue.Parallel {
		window := 1 + r.IntN(50)
		options = append(options, queue.WithMaxInFlight(window), queue.WithPrefetch(r.IntN(window+1)))
	}
	return options
}

// putOptions draws an item's priority and delay.
func (f *queueFeatures) putOptions(r *rand.Rand, i *item) (options []queue.PutOption) {
	if f == nil {
		return nil
	}
	if i.priority = pickOne(r, 0, 0, 1, 1+r.IntN(queue.MaxPriority)); i.priority > 0 {
		options = append(options, queue.WithPriority(i.priority))
	}
	if oneIn(r, 5) {
		delay := durationBetween(r, time.Second, 10*time.Second)
		i.due = time.Now().Add(delay)
		options = append(options, queue.WithDelay(delay))
	}
	if f.cancels {
		options = append(options, queue.WithID(i.name))
	}
	return options
}

// isFullError reports whether nothing was put because the queue was full.
func (f *queueFeatures) isFullError(err error) bool {
	return f != nil && f.capacity > 0 && f.failWhenFull && errors.Is(err, queue.ErrFull)
}

func (f *queueFeatures) exceedsAttempts(attempt int) bool {
	return f != nil && f.attempts > 0 && attempt > f.attempts
}

// isEarly reports whether a delayed item is delivered too early. The servers' timestamps have whole
// milliseconds.
func (i itemFeatures) isEarly(now time.Time) bool { return now.Before(i.due.Add(-time.Millisecond)) }

// cancelAtProgramEnd cancels a call at the end of the program, when a producer may wait for
// capacity forever.
func (s *queueWorkload) cancelAtProgramEnd(cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-s.sim.programEnd:
			cancel()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// pauseOrPurge pauses the queue for some time, or purges it, and checks the capacity.
func (s *queueWorkload) pauseOrPurge(a *actor) {
	s.sim.countOperation("queue operation")
	if most := s.features.capacity; most > 0 {
		if n := s.itemCount(); n > most {
			s.sim.addViolation(s.path(), "bound", "the queue has %d items, its capacity is %d", n, most)
		}
	}
	q := s.queue(a.process)
	if oneIn(a.rng, 4) {
		s.purge(a, q)
		return
	}
	ctx, cancel := a.callContext()
	defer cancel()
	began := time.Now()
	err := q.Pause(ctx)
	s.logOperation(a, ctx, "pause", err)
	s.pauseEnded(began, err)
	a.sleep(a.ctx, pickOne(a.rng, durationBetween(a.rng, 0, s.sim.plan.sessionTimeout),
		durationBetween(a.rng, 0, 3*s.sim.plan.sessionTimeout)))
	again, cancelAgain := context.WithCancel(a.ctx)
	defer cancelAgain()
	s.resume(a, again, q)
}

// pauseEnded notes a pause, unless a Resume may have been carried out meanwhile.
func (s *queueWorkload) pauseEnded(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.features.pausedSince.IsZero() && s.features.resuming == 0 &&
		began.After(s.features.uncertainUntil) {
		s.features.pausedSince = time.Now()
	}
}

func (s *queueWorkload) resume(a *actor, ctx context.Context, q *queue.Queue[string]) error {
	s.mu.Lock()
	s.features.pausedSince = time.Time{}
	s.features.resuming++
	s.mu.Unlock()
	err := q.Resume(ctx)
	s.logOperation(a, ctx, "resume", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.features.resuming--
	s.features.uncertainUntil = time.Now()
	if err != nil { // it may be carried out until the session's end
		s.features.uncertainUntil = time.Now().Add(2 * s.sim.plan.sessionTimeout)
	}
	return err
}

// forbidsDelivery reports whether no new delivery may be seen: the queue was paused so long ago
// that each live delivery belongs to a session whose heartbeat is newer, and the session has seen
// the pause before that. The caller holds the mutex.
func (f *queueFeatures) forbidsDelivery(timeout time.Duration) bool {
	return f != nil && !f.pausedSince.IsZero() && time.Since(f.pausedSince) > timeout+time.Second
}

// resumeQueue ends a pause that a crashed process has left.
func (s *queueWorkload) resumeQueue(a *actor) {
	for s.features != nil && a.ctx.Err() == nil {
		err := s.resume(a, a.ctx, s.queue(a.process))
		if err == nil || !failure.IsTransient(err) {
			return
		}
	}
}

// logOperation logs an operation and checks its error. An operation may fail because its session
// was lost.
func (s *queueWorkload) logOperation(a *actor, ctx context.Context, what string, err error) {
	s.sim.history.add(s.path(), "%s %ss the queue: %s", a.name, what, outcome(err))
	if err != nil && a.ctx.Err() == nil && !failure.IsTransient(err) &&
		!a.isExpectedError(ctx, err, framework.ErrClosed) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// purge removes the queue's items. An item that was surely in the queue before, and has not become
// due since, must be gone after a purge that succeeds. An item that was put meanwhile may be gone.
func (s *queueWorkload) purge(a *actor, q *queue.Queue[string]) {
	there := s.notePurge()
	ctx, cancel := a.callContext()
	defer cancel()
	_, err := q.Purge(ctx)
	s.logOperation(a, ctx, "purge", err)
	s.notePurge()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range there {
		i.purged = i.purged || i.due.IsZero() || i.due.After(time.Now())
	}
}

// notePurge notes that all items may be gone, and returns those that are surely in the queue.
func (s *queueWorkload) notePurge() (there []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		i.mayBePurged = true
		if i.confirmed && !i.acked {
			there = append(there, i)
		}
	}
	return there
}

// isPurged reports whether a purge has surely removed an item.
func (s *queueWorkload) isPurged(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[name]
	return i != nil && i.purged
}

// checkCapacity fills the empty queue up to its capacity and purges it: no place may be lost or
// given twice.
func (s *queueWorkload) checkCapacity() {
	if s.features == nil || s.features.capacity == 0 {
		return
	}
	p := s.sim.startProcess(len(s.sim.plan.workloads)+200, 0)
	defer p.close()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	q := queue.New(p.client, s.path(), codec.Text(), queue.WithOrder(s.order), queue.WithFailWhenFull())
	for n := range s.features.capacity {
		if err := q.Put(ctx, "filling"); err != nil {
			s.sim.addViolation(s.path(), "bound", "only %d of %d items fit into an empty queue: %v", n,
				s.features.capacity, err)
			break
		}
	}
	if err := q.Put(ctx, "beyond"); !errors.Is(err, queue.ErrFull) {
		s.sim.addViolation(s.path(), "bound", "a full queue did not refuse an item: %v", err)
	}
	if n, err := q.Purge(ctx); err != nil || n < s.features.capacity {
		s.sim.addViolation(s.path(), "purges", "%d of %d items were purged: %v", n, s.features.capacity, err)
	}
	if err := q.Close(ctx); err != nil {
		s.sim.addViolation(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
}

// deadLetters are the names of the dead letters.
func (s *queueWorkload) deadLetters() map[string]bool {
	dead := map[string]bool{}
	if s.features == nil {
		return dead
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := queue.New(s.sim.operator, s.path(), codec.Text())
	for letter, err := range q.DeadLetters(ctx) {
		if err != nil {
			s.sim.addViolation(s.path(), "items", "the dead letters cannot be read: %v", err)
			break
		}
		if s.features.attempts == 0 {
			s.sim.addViolation(s.path(), "attempts", "%s became a dead letter: %s", letter.Data, letter.LastError)
		}
		dead[string(letter.Data)] = true
	}
	if err := q.Close(ctx); err != nil {
		s.sim.addViolation(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
	return dead
}
