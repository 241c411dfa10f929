package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// lines are the rules of a queue scene whose items have priorities and delays, and whose queue has bounds, attempts, pauses and purges.
// It is nil in a scene without them.
type lines struct {
	attempts int // 0: any number
	capacity int // 0: no bound
	refusal  bool

	// Guarded by the scene's mutex.
	paused    time.Time // since when the queue is paused for sure; zero if that is not known
	resuming  int       // calls of Resume that have not ended
	uncertain time.Time // until when a Resume that has failed may still be done
}

// lineItem is what else is known of an item.
type lineItem struct {
	priority    int
	due         time.Time // it was put for later: not to be had before; zero if it was not
	purged      bool      // it was there when a purge began that has returned nil
	mayBePurged bool      // a purge has begun since its put did
}

// newLinesScene is a queue scene with all of that.
func newLinesScene(w *world, spec sceneSpec) scene {
	s, _ := newQueueScene(w, spec).(*queueScene)
	r := stream(w.plan.seed, "lines "+spec.path)
	s.lines = &lines{attempts: pick(r, 0, 2+r.IntN(5)), capacity: pick(r, 0, 0, 3+r.IntN(40)), refusal: oneIn(r, 2)}
	return s
}

// options are those of a process's queue. Parallel consumers have deep windows of items in hand.
func (l *lines) options(r *rand.Rand, order queue.Order) (options []queue.Option) {
	if l == nil {
		return nil
	}
	if l.attempts > 0 {
		options = append(options, queue.WithMaxAttempts(l.attempts))
	}
	if l.capacity > 0 {
		options = append(options, queue.WithCapacity(l.capacity))
	}
	if l.refusal {
		options = append(options, queue.WithFailWhenFull())
	}
	if order == queue.Parallel {
		window := 1 + r.IntN(50)
		options = append(options, queue.WithMaxInFlight(window), queue.WithPrefetch(r.IntN(window+1)))
	}
	return options
}

// draw says how an item is put.
func (l *lines) draw(r *rand.Rand, i *item) (options []queue.PutOption) {
	if l == nil {
		return nil
	}
	if i.priority = pick(r, 0, 0, 1, 1+r.IntN(queue.MaxPriority)); i.priority > 0 {
		options = append(options, queue.WithPriority(i.priority))
	}
	if oneIn(r, 5) {
		delay := between(r, time.Second, 10*time.Second)
		i.due = time.Now().Add(delay)
		options = append(options, queue.WithDelay(delay))
	}
	return options
}

// refuses tells an error that says that nothing was put since the queue is full.
func (l *lines) refuses(err error) bool {
	return l != nil && l.capacity > 0 && l.refusal && errors.Is(err, queue.ErrFull)
}

func (l *lines) beyond(attempt int) bool { return l != nil && l.attempts > 0 && attempt > l.attempts }

// early tells whether an item that was put for later is delivered too soon. The servers stamp whole milliseconds.
func (i lineItem) early(now time.Time) bool { return now.Before(i.due.Add(-time.Millisecond)) }

// untilOver ends a call when the program is over: a producer that waits for room may wait in vain then.
func (s *queueScene) untilOver(cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-s.w.over:
			cancel()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// operate pauses the queue for some time, purges it, or counts what is there.
func (s *queueScene) operate(a *actor) {
	s.w.count("queue operation")
	if most := s.lines.capacity; most > 0 {
		if n := s.present(); n > most {
			s.w.violate(s.path(), "bound", "%d items are there, at most %d may be", n, most)
		}
	}
	q := s.queue(a.process)
	if oneIn(a.r, 4) {
		s.purge(a, q)
		return
	}
	ctx, cancel := a.patience()
	defer cancel()
	began := time.Now()
	err := q.Pause(ctx)
	s.operated(a, ctx, "pause", err)
	s.pauseEnded(began, err)
	a.rest(a.ctx, pick(a.r, between(a.r, 0, s.w.plan.timeout), between(a.r, 0, 3*s.w.plan.timeout)))
	again, cancelAgain := context.WithCancel(a.ctx)
	defer cancelAgain()
	s.resume(a, again, q)
}

// pauseEnded notes a pause, unless a Resume was, or may be, done meanwhile.
func (s *queueScene) pauseEnded(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.lines.paused.IsZero() && s.lines.resuming == 0 && began.After(s.lines.uncertain) {
		s.lines.paused = time.Now()
	}
}

func (s *queueScene) resume(a *actor, ctx context.Context, q *queue.Queue[string]) error {
	s.mu.Lock()
	s.lines.paused = time.Time{}
	s.lines.resuming++
	s.mu.Unlock()
	err := q.Resume(ctx)
	s.operated(a, ctx, "resume", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines.resuming--
	s.lines.uncertain = time.Now()
	if err != nil { // it was on its way, at most until the session's end
		s.lines.uncertain = time.Now().Add(2 * s.w.plan.timeout)
	}
	return err
}

// keepsBack tells whether nothing is handed out any more. The queue was paused so long ago that each delivery which stands is of a session
// that was proven since, and its process has heard of the pause before that. The scene's mutex is held.
func (l *lines) keepsBack(timeout time.Duration) bool {
	return l != nil && !l.paused.IsZero() && time.Since(l.paused) > timeout+time.Second
}

// goOn ends a pause that somebody who died has left.
func (s *queueScene) goOn(a *actor) {
	for s.lines != nil && a.ctx.Err() == nil {
		err := s.resume(a, a.ctx, s.queue(a.process))
		if err == nil || !framework.IsTransient(err) {
			return
		}
	}
}

// operated notes an operation. That a session was lost in the midst of it is told to its caller.
func (s *queueScene) operated(a *actor, ctx context.Context, what string, err error) {
	s.w.h.note(s.path(), "%s %ss the queue: %s", a.name, what, outcome(err))
	if err != nil && a.ctx.Err() == nil && !framework.IsTransient(err) && !a.excused(ctx, err, queue.ErrClosed) {
		s.w.violate(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// purge removes what is there. What was surely there when it began, and has not come due since, is gone once it has returned. What was put
// meanwhile may be gone.
func (s *queueScene) purge(a *actor, q *queue.Queue[string]) {
	there := s.notePurge()
	ctx, cancel := a.patience()
	defer cancel()
	_, err := q.Purge(ctx)
	s.operated(a, ctx, "purge", err)
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
func (s *queueScene) notePurge() (there []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		i.mayBePurged = true
		if i.sure && !i.acked {
			there = append(there, i)
		}
	}
	return there
}

// isPurged tells whether an item is gone for good.
func (s *queueScene) isPurged(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[name]
	return i != nil && i.purged
}

// fillUp puts as many items as the bound allows into the queue, which is empty, and one more, and purges them: no room was lost, and none was
// given twice.
func (s *queueScene) fillUp() {
	if s.lines == nil || s.lines.capacity == 0 {
		return
	}
	p := s.w.start(len(s.w.plan.scenes)+200, 0)
	defer p.end()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	q := queue.New(p.client, s.path(), queue.Text(), queue.WithOrder(s.order), queue.WithFailWhenFull())
	for n := range s.lines.capacity {
		if err := q.Put(ctx, "filling"); err != nil {
			s.w.violate(s.path(), "bound", "only %d of %d items can be put into an empty queue: %v", n, s.lines.capacity, err)
			break
		}
	}
	if err := q.Put(ctx, "beyond"); !errors.Is(err, queue.ErrFull) {
		s.w.violate(s.path(), "bound", "a full queue takes another item: %v", err)
	}
	if n, err := q.Purge(ctx); err != nil || n < s.lines.capacity {
		s.w.violate(s.path(), "purges", "%d of %d items were purged: %v", n, s.lines.capacity, err)
	}
	if err := q.Close(ctx); err != nil {
		s.w.violate(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
}

// deadLetters are the names of the items that were given up.
func (s *queueScene) deadLetters() map[string]bool {
	dead := map[string]bool{}
	if s.lines == nil {
		return dead
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q := queue.New(s.w.operator, s.path(), queue.Text())
	for letter, err := range q.DeadLetters(ctx) {
		if err != nil {
			s.w.violate(s.path(), "items", "the dead letters cannot be read: %v", err)
			break
		}
		if s.lines.attempts == 0 {
			s.w.violate(s.path(), "attempts", "%s was given up: %s", letter.Data, letter.Reason)
		}
		dead[string(letter.Data)] = true
	}
	if err := q.Close(ctx); err != nil {
		s.w.violate(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
	return dead
}
