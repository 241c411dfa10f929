package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// queueFeatures are the rules of a queue scene whose items have priorities and delays, and whose queue has bounds, attempts, pauses and purges.
// It is nil in a scene without them.
type queueFeatures struct {
	attempts     int // 0: any number
	capacity     int // 0: no bound
	failWhenFull bool

	// Guarded by the scene's mutex.
	pausedSince    time.Time // since when the queue is paused for sure; zero if that is not known
	resuming       int       // calls of Resume that have not ended
	uncertainUntil time.Time // until when a Resume that has failed may still be done
}

// itemFeatures is what else is known of an item.
type itemFeatures struct {
	priority    int
	due         time.Time // it was put for later: not to be had before; zero if it was not
	purged      bool      // it was there when a purge began that has returned nil
	mayBePurged bool      // a purge has begun since its put did
}

// newQueueFeaturesWorkload is a queue scene with all of that.
func newQueueFeaturesWorkload(sim *simulation, spec workloadSpec) workload {
	s, _ := newQueueWorkload(sim, spec).(*queueWorkload)
	r := newRand(sim.plan.seed, "lines "+spec.path)
	s.features = &queueFeatures{attempts: pickOne(r, 0, 2+r.IntN(5)), capacity: pickOne(r, 0, 0, 3+r.IntN(40)), failWhenFull: oneIn(r, 2)}
	return s
}

// options are those of a process's queue. Parallel consumers have deep windows of items in hand.
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
	if order == queue.Parallel {
		window := 1 + r.IntN(50)
		options = append(options, queue.WithMaxInFlight(window), queue.WithPrefetch(r.IntN(window+1)))
	}
	return options
}

// putOptions says how an item is put.
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
	return options
}

// isFullError tells an error that says that nothing was put since the queue is full.
func (f *queueFeatures) isFullError(err error) bool {
	return f != nil && f.capacity > 0 && f.failWhenFull && errors.Is(err, queue.ErrFull)
}

func (f *queueFeatures) exceedsAttempts(attempt int) bool {
	return f != nil && f.attempts > 0 && attempt > f.attempts
}

// isEarly tells whether an item that was put for later is delivered too soon. The servers stamp whole milliseconds.
func (i itemFeatures) isEarly(now time.Time) bool { return now.Before(i.due.Add(-time.Millisecond)) }

// cancelAtProgramEnd ends a call when the program is over: a producer that waits for room may wait in vain then.
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

// pauseOrPurge pauses the queue for some time, purges it, or counts what is there.
func (s *queueWorkload) pauseOrPurge(a *actor) {
	s.sim.countOperation("queue operation")
	if most := s.features.capacity; most > 0 {
		if n := s.itemCount(); n > most {
			s.sim.addViolation(s.path(), "bound", "%d items are there, at most %d may be", n, most)
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
	a.sleep(a.ctx, pickOne(a.rng, durationBetween(a.rng, 0, s.sim.plan.sessionTimeout), durationBetween(a.rng, 0, 3*s.sim.plan.sessionTimeout)))
	again, cancelAgain := context.WithCancel(a.ctx)
	defer cancelAgain()
	s.resume(a, again, q)
}

// pauseEnded notes a pause, unless a Resume was, or may be, done meanwhile.
func (s *queueWorkload) pauseEnded(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.features.pausedSince.IsZero() && s.features.resuming == 0 && began.After(s.features.uncertainUntil) {
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
	if err != nil { // it was on its way, at most until the session's end
		s.features.uncertainUntil = time.Now().Add(2 * s.sim.plan.sessionTimeout)
	}
	return err
}

// forbidsDelivery tells whether nothing is handed out any more. The queue was paused so long ago that each delivery which stands is of a session
// that was proven since, and its process has heard of the pause before that. The scene's mutex is held.
func (f *queueFeatures) forbidsDelivery(timeout time.Duration) bool {
	return f != nil && !f.pausedSince.IsZero() && time.Since(f.pausedSince) > timeout+time.Second
}

// resumeQueue ends a pause that somebody who died has left.
func (s *queueWorkload) resumeQueue(a *actor) {
	for s.features != nil && a.ctx.Err() == nil {
		err := s.resume(a, a.ctx, s.queue(a.process))
		if err == nil || !framework.IsTransient(err) {
			return
		}
	}
}

// logOperation notes an operation. That a session was lost in the midst of it is told to its caller.
func (s *queueWorkload) logOperation(a *actor, ctx context.Context, what string, err error) {
	s.sim.history.add(s.path(), "%s %ss the queue: %s", a.name, what, outcome(err))
	if err != nil && a.ctx.Err() == nil && !framework.IsTransient(err) && !a.isExpectedError(ctx, err, queue.ErrClosed) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// purge removes what is there. What was surely there when it began, and has not come due since, is gone once it has returned. What was put
// meanwhile may be gone.
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

// notePurge notes that all items may be gone, and returns those that are surely there.
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

// isPurged tells whether an item is gone for good.
func (s *queueWorkload) isPurged(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[name]
	return i != nil && i.purged
}

// checkCapacity puts as many items as the bound allows into the queue, which is empty, and one more, and purges them: no room was lost, and none was
// given twice.
func (s *queueWorkload) checkCapacity() {
	if s.features == nil || s.features.capacity == 0 {
		return
	}
	p := s.sim.startProcess(len(s.sim.plan.workloads)+200, 0)
	defer p.close()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	q := queue.New(p.client, s.path(), queue.Text(), queue.WithOrder(s.order), queue.WithFailWhenFull())
	for n := range s.features.capacity {
		if err := q.Put(ctx, "filling"); err != nil {
			s.sim.addViolation(s.path(), "bound", "only %d of %d items can be put into an empty queue: %v", n, s.features.capacity, err)
			break
		}
	}
	if err := q.Put(ctx, "beyond"); !errors.Is(err, queue.ErrFull) {
		s.sim.addViolation(s.path(), "bound", "a full queue takes another item: %v", err)
	}
	if n, err := q.Purge(ctx); err != nil || n < s.features.capacity {
		s.sim.addViolation(s.path(), "purges", "%d of %d items were purged: %v", n, s.features.capacity, err)
	}
	if err := q.Close(ctx); err != nil {
		s.sim.addViolation(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
}

// deadLetters are the names of the items that were given up.
func (s *queueWorkload) deadLetters() map[string]bool {
	dead := map[string]bool{}
	if s.features == nil {
		return dead
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := queue.New(s.sim.operator, s.path(), queue.Text())
	for letter, err := range q.DeadLetters(ctx) {
		if err != nil {
			s.sim.addViolation(s.path(), "items", "the dead letters cannot be read: %v", err)
			break
		}
		if s.features.attempts == 0 {
			s.sim.addViolation(s.path(), "attempts", "%s was given up: %s", letter.Data, letter.Reason)
		}
		dead[string(letter.Data)] = true
	}
	if err := q.Close(ctx); err != nil {
		s.sim.addViolation(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
	return dead
}
