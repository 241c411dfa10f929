package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

const (
	// settledAfter is the time without an error after which something counts as out of trouble.
	settledAfter = 2 * time.Minute
	// maxWorkers bounds how many jobs are checked at once.
	maxWorkers = 64
)

// dispatcher has the jobs of one member session checked when they are due. One goroutine waits for all of them, and few check them, so
// that an idle job costs no goroutine.
type dispatcher struct {
	ctx      context.Context // done when the member session ends
	report   *reporter
	clock    *tickClock
	slots    *runSlots
	maxPause time.Duration
	askTime  func(context.Context) error // makes the estimate of the ensemble's clock anew

	wakeUp chan struct{} // buffered
	tasks  sync.WaitGroup

	mu      sync.Mutex
	jobs    map[string]*dueJob
	due     dueHeap
	ready   []*dueJob // to be checked
	waiting []*dueJob // for a slot, the first that began to wait first
	turns   int       // jobs that have left waiting and are about to be checked: a free slot is kept for each
	workers int
	asking  bool      // the ensemble is asked for its time
	behind  time.Time // when this machine's clock was last found to be behind, or zero
}

// dueJob is an owned job and when it is due. All but owned is guarded by the dispatcher.
type dueJob struct {
	owned  *ownedJob
	due    time.Time // when to check next
	place  int       // in the heap, or notInHeap
	busy   bool      // it is being checked
	again  bool      // and is to be checked once more
	inLine bool      // it waits for a slot
	turn   bool      // a free slot is kept for its next check
	left   bool      // it belongs to this member no more
	stale  bool      // another member has changed the state
	ahead  time.Time // the tick that was last reported as held by the ensemble's clock
}

func newDispatcher(ctx context.Context, report *reporter, clock *tickClock, slots *runSlots) *dispatcher {
	return &dispatcher{ctx: ctx, report: report, clock: clock, slots: slots, wakeUp: make(chan struct{}, 1), jobs: map[string]*dueJob{}}
}

// run waits for what is due until the member session ends.
func (d *dispatcher) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.wakeUp:
		case <-timer.C:
		case <-d.ctx.Done():
			return
		}
		pause, dispute := d.enqueueDue()
		timer.Reset(pause)
		if dispute != nil { // reported without the lock, since the observer may call the scheduler
			d.report.warn("this machine's clock and the ensemble's differ about a tick", "job", dispute.Job,
				"tick", dispute.Run.Tick, "kind", dispute.Kind, "error", dispute.Err)
			d.report.event(*dispute)
		}
	}
}

// wake makes run look for what is due.
func (d *dispatcher) wake() {
	select {
	case d.wakeUp <- struct{}{}:
	default:
	}
}

// enqueueDue has the due jobs checked. It returns the time until there is more, and an event to report if the clocks differ about a tick.
func (d *dispatcher) enqueueDue() (pause time.Duration, dispute *Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if next := d.due.first(); next != nil {
		if how := d.clock.disagree(next.due); how != agreed {
			dispute = d.resolveDispute(next, how)
		}
	}
	now := d.clock.now()
	for j := d.due.first(); j != nil && !j.due.After(now); j = d.due.first() {
		d.enqueue(j)
	}
	for len(d.waiting) > 0 && d.slots.freeSlots() > d.turns {
		j := d.waiting[0]
		d.waiting, j.inLine = d.waiting[1:], false
		if !j.left {
			j.turn = true
			d.turns++
			d.enqueue(j)
		}
	}
	next := d.due.first()
	if next == nil {
		return d.maxPause, dispute
	}
	pause = min(d.maxPause, next.due.Sub(now))
	if d.clock.disagree(next.due) != agreed {
		pause = min(pause, askTimeAfter)
	}
	return pause, dispute
}

// resolveDispute asks for the ensemble's time again when the clocks differ about a tick. It returns an event once for each tick
// that waits for the ensemble's clock, and for each time in which this machine's is behind. The dispatcher is locked.
func (d *dispatcher) resolveDispute(j *dueJob, how clockDispute) *Event {
	if d.clock.isStale() {
		if !d.asking {
			d.asking = true
			d.tasks.Go(d.refreshClock)
		}
		return nil // which clock is right is not known yet
	}
	kind := EventHeld
	switch {
	case how == behind:
		kind = EventBehind
		told := !d.behind.IsZero() && time.Since(d.behind) < settledAfter
		if d.behind = time.Now(); told {
			return nil
		}
	case j.ahead.Equal(j.due):
		return nil
	default:
		j.ahead = j.due
	}
	name := j.owned.job.Name
	return &Event{Kind: kind, Job: name, Run: Run{Job: name, Tick: j.due.UTC()}, Err: d.clock.difference()}
}

// refreshClock makes the estimate of the ensemble's clock anew.
func (d *dispatcher) refreshClock() {
	err := d.askTime(d.ctx)
	d.mu.Lock()
	d.asking = false
	d.mu.Unlock()
	if err == nil {
		d.wake()
	}
}

// enqueue has a job checked, once more if it is being checked. The dispatcher is locked.
func (d *dispatcher) enqueue(j *dueJob) {
	switch {
	case j.left:
		return
	case j.busy:
		j.again = true
		return
	}
	j.busy = true
	d.due.remove(j)
	d.ready = append(d.ready, j)
	if d.workers < maxWorkers && d.ctx.Err() == nil {
		d.workers++
		d.tasks.Go(d.work)
	}
}

// work checks the jobs that are ready.
func (d *dispatcher) work() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ready) > 0 && d.ctx.Err() == nil {
		j := d.ready[0]
		d.ready = d.ready[1:]
		stale, turn := j.stale, j.turn
		j.again, j.stale, j.turn = false, false, false
		// A job that is due again as soon as its run ends must not take the slot for which another one waits.
		mayTakeSlot := turn || d.slots.freeSlots() > len(d.waiting)+d.turns
		d.mu.Unlock()
		next, waits := j.owned.check(stale, mayTakeSlot)
		d.mu.Lock()
		j.busy = false
		if turn {
			d.turns--
		}
		if waits && !j.inLine {
			j.inLine = true
			d.waiting = append(d.waiting, j)
		}
		if j.again {
			d.enqueue(j)
		} else if !j.left {
			d.due.reschedule(j, next)
		}
		d.wake()
	}
	d.workers--
}

// recheck has a job checked, if it belongs to this member. known is the cache by which the caller knows its state, or nil
// if another member has changed it.
func (d *dispatcher) recheck(job string, known *stateCache) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[job]; j != nil {
		j.stale = j.stale || j.owned.cache != known
		d.enqueue(j)
	}
}

// owns reports whether a job belongs to this member.
func (d *dispatcher) owns(job string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs[job] != nil
}

// assign has jobs checked from now on, and unassigns those of other definitions. decide returns this member's jobs and whether each belongs
// to it. It is called with the lock, so that of several calls of assign the last one uses the latest facts.
func (d *dispatcher) assign(decide func() (jobs []*job, mine func(*job) bool), own func(*job) *ownedJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	jobs, mine := decide()
	for _, j := range jobs {
		if present := d.jobs[j.Name]; present != nil && present.owned.job != j {
			d.unassignLocked(present) // the job was updated, or has come back
		}
		if !j.entered.Load() {
			continue // a check would take it for removed
		}
		switch present, belongs := d.jobs[j.Name], mine(j); {
		case belongs && present == nil:
			added := &dueJob{owned: own(j), place: notInHeap}
			d.jobs[j.Name] = added
			d.enqueue(added)
		case !belongs && present != nil:
			d.unassignLocked(present)
		}
	}
}

// unassign has a definition of a job not checked any more.
func (d *dispatcher) unassign(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if present := d.jobs[j.Name]; present != nil && present.owned.job == j {
		d.unassignLocked(present)
	}
}

func (d *dispatcher) unassignLocked(j *dueJob) {
	j.left = true
	if j.turn {
		j.turn = false
		d.turns--
	}
	d.due.remove(j)
	delete(d.jobs, j.owned.job.Name)
}

const notInHeap = -1

// dueHeap is jobs by when they are due, the first on top.
type dueHeap []*dueJob

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, k int) bool { return h[i].due.Before(h[k].due) }
func (h dueHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].place, h[k].place = i, k
}

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) {
	j := x.(*dueJob)
	j.place = len(*h)
	*h = append(*h, j)
}

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	j.place = notInHeap
	return j
}

// reschedule puts a job where it belongs; one without a time is taken off.
func (h *dueHeap) reschedule(j *dueJob, due time.Time) {
	h.remove(j)
	if j.due = due; !due.IsZero() {
		heap.Push(h, j)
	}
}

func (h *dueHeap) remove(j *dueJob) {
	if j.place != notInHeap {
		heap.Remove(h, j.place)
	}
}

// first is the job that is due next, or nil.
func (h dueHeap) first() *dueJob {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}
