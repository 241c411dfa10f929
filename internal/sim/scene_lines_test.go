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
}

// lineItem is what else is known of an item.
type lineItem struct {
	priority    int
	due         time.Time // it was put for later: not to be had before; zero if it was not
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
		options = append(options, queue.WithRefusal())
	}
	if order == queue.Parallel {
		window := 1 + r.IntN(50)
		options = append(options, queue.WithWindow(window), queue.WithPrefetch(r.IntN(window+1)))
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
		if n := s.left(); n > most {
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
	if err := q.Pause(ctx); err != nil {
		s.operated(a, ctx, "pause", err)
	}
	a.rest(a.ctx, between(a.r, 0, s.w.plan.timeout))
	again, cancelAgain := context.WithCancel(a.ctx)
	defer cancelAgain()
	s.operated(a, again, "resume", q.Resume(again))
}

// goOn ends a pause that somebody who died has left.
func (s *queueScene) goOn(a *actor) {
	for s.lines != nil && a.ctx.Err() == nil {
		err := s.queue(a.process).Resume(a.ctx)
		s.operated(a, a.ctx, "resume", err)
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

// purge removes what is there, so that no item of before, or put meanwhile, need come.
func (s *queueScene) purge(a *actor, q *queue.Queue[string]) {
	s.notePurge()
	ctx, cancel := a.patience()
	defer cancel()
	_, err := q.Purge(ctx)
	s.operated(a, ctx, "purge", err)
	s.notePurge()
}

func (s *queueScene) notePurge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		i.mayBePurged = true
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
