package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

func init() {
	newWorkload["queue"] = newQueueWorkload
	newWorkload["lines"] = newQueueFeaturesWorkload
}

// queueWorkload is a queue into which each actor puts and from which it takes. At the end the
// actors take until the queue is empty, or leave the items to a new process.
type queueWorkload struct {
	workloadBase
	order        queue.Order
	takeAllAtEnd bool // the actors empty the queue at the end
	features     *queueFeatures
	claims       *claimAudit

	mu           sync.Mutex
	lastDelivery time.Time // when the last delivery began
	items        map[string]*item
	started      map[string]int // of each producer, the last item whose first delivery has begun
}

// item is the state of one item.
type item struct {
	name          string
	producer      string
	number        int
	confirmed     bool // its put returned nil
	refused       bool // its put returned that the item was not stored
	delivered     bool
	deliveries    int // number of deliveries, including those that had ended before they were seen
	attempt       int // of the last delivery
	acked         bool
	uncertainAcks int // acknowledgements with an unknown outcome
	itemFeatures
	holder      context.Context
	holderActor *actor
}

func newQueueWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, spec.path)
	return &queueWorkload{workloadBase: workloadBase{sim, spec}, order: pickOne(r, queue.Parallel, queue.Strict),
		takeAllAtEnd: oneIn(r, 2), claims: newClaimAudit(sim, spec.path), items: map[string]*item{},
		started: map[string]int{}}
}

// mayRemain allows watches of sessions that waited for an item or for the end of a pause, and
// writers' markers, which last as long as their sessions.
func (s *queueWorkload) mayRemain(path string) bool {
	return path == s.path()+"/paused" || path == s.path()+"/cancels" || strings.HasPrefix(path, s.path()+"/writers/") ||
		strings.HasPrefix(path, s.path()+"/items/")
}

// queue is the process's queue.
func (s *queueWorkload) queue(p *process) *queue.Queue[string] {
	return processLocal(p, s.path(), func() *queue.Queue[string] {
		r := newRand(s.sim.plan.seed, "queue "+s.path()+p.name)
		options := []queue.Option{queue.WithOrder(s.order),
			queue.WithIdleTimeout(durationBetween(r, time.Millisecond, 8*time.Second))}
		if s.order == queue.Parallel {
			window, prefetch := 1+r.IntN(4), r.IntN(2)
			options = append(options, queue.WithMaxInFlight(window), queue.WithPrefetch(prefetch))
		}
		return queue.New(p.client, s.path(), codec.Text(), append(options, s.features.options(r, s.order)...)...)
	})
}

func (s *queueWorkload) runActor(a *actor) {
	for n := 1; a.nextStep(); n++ {
		if s.features != nil && s.features.cancels && oneIn(a.rng, 4) {
			s.cancelItem(a)
		} else if s.features != nil && oneIn(a.rng, 12) {
			s.pauseOrPurge(a)
		} else if oneIn(a.rng, 2) {
			s.put(a, n)
		} else {
			s.take(a, a.sim.programEnd)
		}
	}
	if s.takeAllAtEnd && a.ctx.Err() == nil {
		s.resumeQueue(a)
		s.takeUntilEmpty(a)
	}
	s.closeAfterActors(a)
}

// takeUntilEmpty takes until no item comes for a while. A longer wait beside a due item is a
// violation: no process is left that could hold it, and every crashed one is known to be dead.
func (s *queueWorkload) takeUntilEmpty(a *actor) {
	quietTime := s.sim.plan.sessionTimeout + 30*time.Second
	until := s.sim.history.began.Add(s.sim.plan.duration + 3*quietTime)
	ctx, cancel := context.WithDeadline(a.ctx, until)
	defer cancel()
	for ctx.Err() == nil {
		asked := time.Now()
		d, err := s.queue(a.process).Take(ctx)
		switch {
		case err == nil:
			s.checkDelivery(a, d)
			s.ack(a, a.ctx, d)
		case a.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			if !a.isExpectedError(ctx, err) {
				s.sim.addViolation(s.path(), "errors", "%s cannot take: %v", a.name, err)
			}
			return
		case time.Since(asked) >= quietTime && s.sinceLastDelivery() >= quietTime && s.dueItemCount() > 0:
			s.sim.addViolation(s.path(), "progress", "%s has waited for %v while %d items are due", a.name,
				time.Since(asked), s.dueItemCount())
		}
	}
}

// sinceLastDelivery is the time since the last delivery began.
func (s *queueWorkload) sinceLastDelivery() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.lastDelivery)
}

// closeAfterActors closes the process's queue after all its actors have finished. The first actor
// does it.
func (s *queueWorkload) closeAfterActors(a *actor) {
	gone := processLocal(a.process, s.path()+" gone", func() *sync.WaitGroup {
		var g sync.WaitGroup
		g.Add(s.spec.actors)
		return &g
	})
	gone.Done()
	if a.name != a.process.name+"a" {
		return
	}
	gone.Wait()
	if err := s.queue(a.process).Close(a.ctx); !a.isExpectedError(a.ctx, err, nil) && a.ctx.Err() == nil {
		s.sim.addViolation(s.path(), "errors", "%s cannot close its queue: %v", a.name, err)
	}
}

func (s *queueWorkload) put(a *actor, n int) {
	i := &item{name: fmt.Sprintf("%s-%04d", a.name, n), producer: a.name, number: n}
	s.mu.Lock()
	s.items[i.name] = i
	s.mu.Unlock()
	ctx, cancel := a.callContext()
	defer cancel()
	defer s.cancelAtProgramEnd(cancel)()
	err := s.queue(a.process).Put(ctx, i.name, s.features.putOptions(a.rng, i)...)
	s.sim.history.add(s.path(), "%s puts %s: %s", a.name, i.name, outcome(err))
	s.sim.countOperation("put")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		i.confirmed = true
	case errors.Is(err, framework.ErrOutcomeUnknown) || errors.Is(err, framework.ErrClosed):
	case a.ctx.Err() != nil: // its process has crashed
	case s.features.isFullError(err):
		i.refused = true
	case a.isExpectedError(ctx, err):
		if i.refused = true; i.delivered {
			s.sim.addViolation(s.path(), "puts", "%s was delivered, although its put returned that it was not stored",
				i.name)
		}
	default:
		s.sim.addViolation(s.path(), "errors", "%s cannot put: %v", a.name, err)
	}
}

// take takes an item, works on it and settles it. It gives up at the end of the program.
func (s *queueWorkload) take(a *actor, over <-chan struct{}) {
	ctx, cancel := a.callContext()
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
		if !a.isExpectedError(ctx, err, framework.ErrClosed) {
			s.sim.addViolation(s.path(), "errors", "%s cannot take: %v", a.name, err)
		}
		return
	}
	s.checkDelivery(a, d)
	a.sleep(d.Context(), pickOne(a.rng, 0, durationBetween(a.rng, 0, time.Second),
		durationBetween(a.rng, 0, s.sim.plan.sessionTimeout)))
	s.ackOrNack(a, d)
}

// checkDelivery checks a delivery: no other live holder, and attempt, order, delay and pauses as
// promised. A delivery that had ended before it was seen counts as an attempt only.
func (s *queueWorkload) checkDelivery(a *actor, d *queue.Delivery[string]) {
	late := a.waitWhileFrozen()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[d.Value]
	if i != nil {
		i.deliveries++
	}
	if (late || a.frozen()) && d.Context().Err() != nil {
		return
	}
	s.sim.countOperation("take")
	s.sim.history.add(s.path(), "%s has %s, attempt %d", a.name, d.Value, d.Attempt)
	s.lastDelivery = time.Now()
	switch {
	case i == nil:
		s.sim.addViolation(s.path(), "items", "%s has %q, which was not put", a.name, d.Value)
		return
	case i.refused:
		s.sim.addViolation(s.path(), "puts", "%s was delivered, although its put returned that it was not stored",
			i.name)
	case i.isEarly(time.Now()):
		s.sim.addViolation(s.path(), "delays", "%s has %s before %v", a.name, i.name, i.due)
	case s.features.exceedsAttempts(d.Attempt):
		s.sim.addViolation(s.path(), "attempts", "%s has %s as attempt %d of %d", a.name, i.name, d.Attempt,
			s.features.attempts)
	case d.Attempt > i.deliveries+s.sim.endedSessionCount()+s.claims.mostExtraAttempts(i.name):
		s.sim.addViolation(s.path(), "attempts",
			"%s has %s as attempt %d, the %d. time, after %d sessions have ended and %d of its claims were given up",
			a.name, i.name, d.Attempt, i.deliveries,
			s.sim.endedSessionCount(), s.claims.mostExtraAttempts(i.name))
	case d.Attempt <= i.attempt && !s.sim.isHitByOperator(a.process):
		// a process hit by an operator may have claimed it before
		s.sim.addViolation(s.path(), "attempts", "%s has %s as attempt %d after attempt %d", a.name, i.name,
			d.Attempt, i.attempt)
	case !late && !a.frozen() && d.Context().Err() == nil && s.features.forbidsDelivery(s.sim.plan.sessionTimeout):
		s.sim.addViolation(s.path(), "pauses", "%s has %s, though the queue is paused since %v", a.name, i.name,
			s.features.pausedSince)
	case i.cancelled && !s.sim.isHitByOperator(a.process):
		s.sim.addViolation(s.path(), "cancels", "%s has %s, which was cancelled", a.name, i.name)
	case i.acked && !s.sim.isHitByOperator(a.process): // a process hit by an operator may have claimed it before
		s.sim.addViolation(s.path(), "items", "%s has %s, which was acknowledged", a.name, i.name)
	case i.holder != nil && !hasEnded(i.holder) && !i.holderActor.frozen() && !a.frozen() &&
		// either may not know of its end so far
		!s.sim.isHitByOperator(i.holderActor.process) && !s.sim.isHitByOperator(a.process):
		s.sim.addViolation(s.path(), "exclusion", "%s has %s beside %s", a.name, i.name, i.holderActor.name)
	}
	i.holder, i.holderActor, i.attempt = d.Context(), a, max(i.attempt, d.Attempt)
	if !i.delivered {
		i.delivered = true
		line := fmt.Sprint(i.producer, i.priority)
		if s.order == queue.Strict && i.number < s.started[line] && i.due.IsZero() {
			s.sim.addViolation(s.path(), "order", "%s begins after a later item of %s", i.name, i.producer)
		}
		if i.due.IsZero() {
			s.started[line] = max(s.started[line], i.number)
		}
	}
}

// ackOrNack acknowledges a delivery, returns it, or leaves it to the end of the process.
func (s *queueWorkload) ackOrNack(a *actor, d *queue.Delivery[string]) {
	ctx, cancel := a.callContext()
	defer cancel()
	if oneIn(a.rng, 5) {
		err := d.Nack(ctx, 0, errors.New("again"))
		s.sim.history.add(s.path(), "%s returns %s: %s", a.name, d.Value, outcome(err))
		return
	}
	s.ack(a, ctx, d)
}

// ack acknowledges a delivery, and checks the result.
func (s *queueWorkload) ack(a *actor, ctx context.Context, d *queue.Delivery[string]) {
	purged := s.isPurged(d.Value)
	err := d.Ack(ctx)
	s.sim.history.add(s.path(), "%s acknowledges %s: %s", a.name, d.Value, outcome(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.items[d.Value]
	switch {
	case err == nil && i.acked:
		s.sim.addViolation(s.path(), "items", "%s was acknowledged twice", i.name)
	case err == nil && i.cancelled:
		s.sim.addViolation(s.path(), "cancels", "%s was acknowledged, and cancelled", i.name)
	case err == nil && purged:
		s.sim.addViolation(s.path(), "purges", "%s was acknowledged after a purge had removed it", i.name)
	case err == nil:
		i.acked = true
	case errors.Is(err, queue.ErrLost), errors.Is(err, framework.ErrOutcomeUnknown),
		errors.Is(err, framework.ErrClosed), a.ctx.Err() != nil, a.isExpectedError(ctx, err):
		i.uncertainAcks++
	default:
		s.sim.addViolation(s.path(), "errors", "%s cannot acknowledge: %v", a.name, err)
	}
}

func hasEnded(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// checkAtEnd takes the remaining items, and checks that no item was lost.
func (s *queueWorkload) checkAtEnd() {
	s.takeRemaining()
	dead := s.deadLetters()
	time.Sleep(10 * time.Second) // time for the client of takeRemaining to close
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if i.confirmed && !i.delivered && !i.mayBePurged && !i.cancelled && !i.mayBeCancelled && !dead[i.name] {
			s.sim.addViolation(s.path(), "items", "%s was put and is lost", i.name)
		}
	}
	if n := s.dueItemCount(); n > 0 {
		s.sim.addViolation(s.path(), "items", "%d items are left in the queue", n)
	}
	s.checkCapacity()
}

// takeRemaining takes all items with a new process.
func (s *queueWorkload) takeRemaining() {
	p := s.sim.startProcess(len(s.sim.plan.workloads)+100, 0)
	defer p.close()
	a := newActor(p, s.spec, 0)
	s.resumeQueue(a)
	q := s.queue(p)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, 4*s.sim.plan.sessionTimeout)
		d, err := q.Take(ctx)
		cancel()
		if err != nil {
			break
		}
		s.checkDelivery(a, d)
		if s.isPurged(d.Value) {
			s.sim.addViolation(s.path(), "purges", "%s was delivered after a purge had removed it", d.Value)
		}
		if err := d.Ack(p.ctx); err != nil {
			s.sim.addViolation(s.path(), "errors", "%s cannot be acknowledged without faults: %v", d.Value, err)
		}
	}
	if err := q.Close(p.ctx); err != nil {
		s.sim.addViolation(s.path(), "errors", "the queue cannot be closed: %v", err)
	}
}

// dueItemCount is the number of due items on the server.
func (s *queueWorkload) dueItemCount() int { return s.countNodes("/items/", "/lanes/") }

// itemCount also includes delayed items.
func (s *queueWorkload) itemCount() int { return s.countNodes("/items/", "/lanes/", "/later/") }

func (s *queueWorkload) countNodes(dirs ...string) (n int) {
	for _, node := range s.sim.zk.Tree(s.path()) {
		name := node.Path[strings.LastIndex(node.Path, "/")+1:]
		if slices.ContainsFunc(dirs, func(dir string) bool { return belongsTo(node.Path, s.path()+dir) }) &&
			strings.HasPrefix(name, "i-") {
			n++
		}
	}
	return n
}
