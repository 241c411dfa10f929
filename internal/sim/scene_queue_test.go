package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/queue"
)

func init() {
	makers["queue"] = newQueueScene
	makers["lines"] = newLinesScene
}

// queueScene is a queue: each actor puts and takes. At the end, the actors go on until nothing comes any more, or leave what is
// there to a process of its own.
type queueScene struct {
	base
	order  queue.Order
	thirst bool // the actors go on
	lines  *lines

	mu      sync.Mutex
	took    time.Time // when a delivery began last
	vain    bool      // a Take has ended without a delivery
	items   map[string]*item
	started map[string]int // of each producer, the last item that a delivery began of for the first time
}

// item is one item's books.
type item struct {
	name     string
	producer string
	number   int
	sure     bool // the put has returned nil
	refused  bool // the put has returned that it was not done
	began    bool
	times    int // that a delivery of it began, or was over before it could
	attempt  int // of its last delivery
	acked    bool
	lost     int // acknowledgements of unknown outcome
	lineItem
	holder context.Context
	who    *actor
}

func newQueueScene(w *world, spec sceneSpec) scene {
	r := stream(w.plan.seed, spec.path)
	return &queueScene{base: base{w, spec}, order: pick(r, queue.Parallel, queue.Strict), thirst: oneIn(r, 2), items: map[string]*item{}, started: map[string]int{}}
}

// stays allows for watches of sessions that have waited for an item, or a pause, which never came, and
// for writers' markers, which last as long as their sessions.
func (s *queueScene) stays(path string) bool {
	return path == s.path()+"/paused" || strings.HasPrefix(path, s.path()+"/writers/") || strings.HasPrefix(path, s.path()+"/items/")
}

// queue is the process's queue.
func (s *queueScene) queue(p *process) *queue.Queue[string] {
	return local(p, s.path(), func() *queue.Queue[string] {
		r := stream(s.w.plan.seed, "queue "+s.path()+p.name)
		options := []queue.Option{queue.WithOrder(s.order), queue.WithIdleTimeout(between(r, time.Millisecond, 8*time.Second))}
		if s.order == queue.Parallel {
			options = append(options, queue.WithMaxInFlight(1+r.IntN(4)), queue.WithPrefetch(r.IntN(2)))
		}
		return queue.New(p.client, s.path(), queue.Text(), append(options, s.lines.options(r, s.order)...)...)
	})
}

func (s *queueScene) play(a *actor) {
	for n := 1; a.goOn(); n++ {
		if s.lines != nil && oneIn(a.r, 12) {
			s.operate(a)
		} else if oneIn(a.r, 2) {
			s.put(a, n)
		} else {
			s.take(a, a.w.over)
		}
	}
	if s.thirst && a.ctx.Err() == nil {
		s.goOn(a)
		s.exhaust(a)
	}
	s.closeLast(a)
}

// exhaust takes until nothing comes for a while. Who waits then waits in vain for nothing: nobody is there who could give an
// item back, or has died and is not known to have.
func (s *queueScene) exhaust(a *actor) {
	calm := s.w.plan.timeout + 30*time.Second
	until := s.w.h.began.Add(s.w.plan.length + 3*calm)
	ctx, cancel := context.WithDeadline(a.ctx, until)
	defer cancel()
	for ctx.Err() == nil {
		asked := time.Now()
		d, err := s.queue(a.process).Take(ctx)
		switch {
		case err == nil:
			s.begin(a, d)
			s.finish(a, a.ctx, d)
		case a.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			if !a.excused(ctx, err) {
				s.w.violate(s.path(), "errors", "%s cannot take: %v", a.name, err)
			}
			return
		case time.Since(asked) >= calm && s.idle() >= calm && s.left() > 0:
			s.w.violate(s.path(), "progress", "%s has waited for %v beside %d items", a.name, time.Since(asked), s.left())
		}
	}
}

// idle is the time since a delivery began last.
func (s *queueScene) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.took)
}

// closeLast closes the process's queue when all of its actors have gone. The first of them does.
func (s *queueScene) closeLast(a *actor) {
	gone := local(a.process, s.path()+" gone", func() *sync.WaitGroup {
		var g sync.WaitGroup
		g.Add(s.spec.actors)
		return &g
	})
	gone.Done()
	if a.name != a.process.name+"a" {
		return
	}
	gone.Wait()
	if err := s.queue(a.process).Close(a.ctx); err != nil && a.ctx.Err() == nil {
		s.w.violate(s.path(), "errors", "%s cannot close its queue: %v", a.name, err)
	}
}

func (s *queueScene) put(a *actor, n int) {
	i := &item{name: fmt.Sprintf("%s-%04d", a.name, n), producer: a.name, number: n}
	s.mu.Lock()
	s.items[i.name] = i
	s.mu.Unlock()
	ctx, cancel := a.patience()
	defer cancel()
	defer s.untilOver(cancel)()
	err := s.queue(a.process).Put(ctx, i.name, s.lines.draw(a.r, i)...)
	s.w.h.note(s.path(), "%s puts %s: %s", a.name, i.name, outcome(err))
	s.w.count("put")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		i.sure = true
	case errors.Is(err, queue.ErrUnknown) || errors.Is(err, queue.ErrClosed):
	case a.ctx.Err() != nil: // its process is dead
	case s.lines.refuses(err):
		i.refused = true
	case a.excused(ctx, err):
		if i.refused = true; i.began {
			s.w.violate(s.path(), "puts", "%s was delivered, although its put says that it was not done", i.name)
		}
	default:
		s.w.violate(s.path(), "errors", "%s cannot put: %v", a.name, err)
	}
}

// take takes an item, works on it and settles it. It waits until the program is over at most.
func (s *queueScene) take(a *actor, over <-chan struct{}) {
	ctx, cancel := a.patience()
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-over:
			cancel()
		case <-stop:
		}
	}()
	d, err := s.queue(a.process).Take(ctx)
	if err != nil {
		s.mu.Lock()
		s.vain = true
		s.mu.Unlock()
		if !a.excused(ctx, err, queue.ErrClosed) {
			s.w.violate(s.path(), "errors", "%s cannot take: %v", a.name, err)
		}
		return
	}
	s.begin(a, d)
	a.rest(d.Context(), pick(a.r, 0, between(a.r, 0, time.Second), between(a.r, 0, s.w.plan.timeout)))
	s.settle(a, d)
}

// begin notes a delivery, and checks that nobody else has the item; but not one that was lost before it could be seen.
func (s *queueScene) begin(a *actor, d *queue.Delivery[string]) {
	late := a.gate()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[d.Value]
	if i != nil {
		i.times++
	}
	if (late || a.frozen()) && d.Context().Err() != nil {
		return
	}
	s.w.count("take")
	s.w.h.note(s.path(), "%s has %s, attempt %d", a.name, d.Value, d.Attempt)
	s.took = time.Now()
	switch {
	case i == nil:
		s.w.violate(s.path(), "items", "%s has %q, which nobody put", a.name, d.Value)
		return
	case i.refused:
		s.w.violate(s.path(), "puts", "%s was delivered, although its put says that it was not done", i.name)
	case i.early(time.Now()):
		s.w.violate(s.path(), "delays", "%s has %s before %v", a.name, i.name, i.due)
	case s.lines.beyond(d.Attempt):
		s.w.violate(s.path(), "attempts", "%s has %s as attempt %d of %d", a.name, i.name, d.Attempt, s.lines.attempts)
	case d.Attempt > i.times+s.w.endedSessions()+s.givenUp():
		s.w.violate(s.path(), "attempts", "%s has %s as attempt %d, the %d. time, after %d sessions have ended", a.name, i.name, d.Attempt, i.times, s.w.endedSessions())
	case d.Attempt <= i.attempt && !s.w.isDoomedProcess(a.process): // whose session an operator has ended may have claimed it before
		s.w.violate(s.path(), "attempts", "%s has %s as attempt %d after attempt %d", a.name, i.name, d.Attempt, i.attempt)
	case !late && !a.frozen() && d.Context().Err() == nil && s.lines.keepsBack(s.w.plan.timeout):
		s.w.violate(s.path(), "pauses", "%s has %s, though the queue is paused since %v", a.name, i.name, s.lines.paused)
	case i.acked && !s.w.isDoomedProcess(a.process): // whose session an operator has ended may have claimed it before
		s.w.violate(s.path(), "items", "%s has %s, which was acknowledged", a.name, i.name)
	case i.holder != nil && !over(i.holder) && !i.who.frozen() && !a.frozen() &&
		!s.w.isDoomedProcess(i.who.process) && !s.w.isDoomedProcess(a.process): // either may be who does not know so far
		s.w.violate(s.path(), "exclusion", "%s has %s beside %s", a.name, i.name, i.who.name)
	}
	i.holder, i.who, i.attempt = d.Context(), a, max(i.attempt, d.Attempt)
	if !i.began {
		i.began = true
		line := fmt.Sprint(i.producer, i.priority)
		if s.order == queue.Strict && i.number < s.started[line] && i.due.IsZero() {
			s.w.violate(s.path(), "order", "%s begins after a later item of %s", i.name, i.producer)
		}
		if i.due.IsZero() {
			s.started[line] = max(s.started[line], i.number)
		}
	}
}

// settle acknowledges a delivery, or gives it back, or leaves that to the end of the process.
func (s *queueScene) settle(a *actor, d *queue.Delivery[string]) {
	ctx, cancel := a.patience()
	defer cancel()
	if oneIn(a.r, 5) {
		err := d.Nack(ctx, 0, errors.New("again"))
		s.w.h.note(s.path(), "%s gives %s back: %s", a.name, d.Value, outcome(err))
		return
	}
	s.finish(a, ctx, d)
}

// finish acknowledges a delivery.
func (s *queueScene) finish(a *actor, ctx context.Context, d *queue.Delivery[string]) {
	purged := s.isPurged(d.Value)
	err := d.Ack(ctx)
	s.w.h.note(s.path(), "%s acknowledges %s: %s", a.name, d.Value, outcome(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[d.Value]
	switch {
	case err == nil && i.acked:
		s.w.violate(s.path(), "items", "%s was acknowledged twice", i.name)
	case err == nil && purged:
		s.w.violate(s.path(), "purges", "%s was acknowledged after a purge had removed it", i.name)
	case err == nil:
		i.acked = true
	case errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrUnknown), errors.Is(err, queue.ErrClosed), a.ctx.Err() != nil, a.excused(ctx, err):
		i.lost++
	default:
		s.w.violate(s.path(), "errors", "%s cannot acknowledge: %v", a.name, err)
	}
}

// givenUp is how many attempts an item of a parallel queue may have that nobody was handed, beside those of ended sessions: its number's ticket
// was given up a moment before it was put. The scene's mutex is held.
func (s *queueScene) givenUp() int {
	if s.vain && s.order == queue.Parallel {
		return 1
	}
	return 0
}

func over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// settled takes what is left, and closes the books.
func (s *queueScene) settled() {
	s.drain()
	dead := s.deadLetters()
	time.Sleep(10 * time.Second) // it has closed its client by then
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if i.sure && !i.began && !i.mayBePurged && !dead[i.name] {
			s.w.violate(s.path(), "items", "%s was put and is lost", i.name)
		}
	}
	if n := s.left(); n > 0 {
		s.w.violate(s.path(), "items", "%d items are left that nobody gets", n)
	}
	s.fillUp()
}

// drain takes everything.
func (s *queueScene) drain() {
	p := s.w.start(len(s.w.plan.scenes)+100, 0)
	defer p.end()
	a := newActor(p, s.spec, 0)
	s.goOn(a)
	q := s.queue(p)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, 4*s.w.plan.timeout)
		d, err := q.Take(ctx)
		cancel()
		if err != nil {
			break
		}
		s.begin(a, d)
		if s.isPurged(d.Value) {
			s.w.violate(s.path(), "purges", "%s is there after a purge had removed it", d.Value)
		}
		if err := d.Ack(p.ctx); err != nil {
			s.w.violate(s.path(), "errors", "%s cannot be acknowledged when all is well: %v", d.Value, err)
		}
	}
	if err := q.Close(p.ctx); err != nil {
		s.w.violate(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
}

// left counts the items that the server has and that are due.
func (s *queueScene) left() int { return s.count("/items/", "/lanes/") }

// present counts also those for later.
func (s *queueScene) present() int { return s.count("/items/", "/lanes/", "/later/") }

func (s *queueScene) count(dirs ...string) (n int) {
	for _, node := range s.w.zk.Tree(s.path()) {
		name := node.Path[strings.LastIndex(node.Path, "/")+1:]
		if slices.ContainsFunc(dirs, func(dir string) bool { return below(node.Path, s.path()+dir) }) && strings.HasPrefix(name, "i-") {
			n++
		}
	}
	return n
}
