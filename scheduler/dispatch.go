package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
)

const (
	// recoveredAfter is the time without an error after which an earlier error counts no more.
	recoveredAfter = 2 * time.Minute
	// maxWorkers bounds how many jobs are checked at once.
	maxWorkers = 64
)

// dispatcher checks the jobs of one member session when they are due. One goroutine waits for all
// jobs, and a few workers check them, so that an idle job costs no goroutine.
type dispatcher struct {
	ctx      context.Context // done when the member session ends
	report   *reporter
	clock    *tickClock
	slots    *runSlots
	maxPause time.Duration
	askTime  func(context.Context) error // makes the estimate of the ensemble's clock anew

	wakeUp chan struct{} // buffered
	tasks  background.Tasks

	mu             sync.Mutex
	jobs           map[string]*dueJob
	due            dueHeap
	ready          []*dueJob // to be checked
	waitingForSlot []*dueJob // in the order in which they began to wait
	// jobs that were taken from waitingForSlot and are about to be checked: a free slot is kept for
	// each
	reservedSlots int
	workers       int
	askingTime    bool      // the ensemble is asked for its time
	lastBehind    time.Time // when this machine's clock was last found to be behind, or zero
}

// dueJob is an owned job and when it is due. All but owned is guarded by the dispatcher.
type dueJob struct {
	owned         *ownedJob
	due           time.Time // when to check next
	heapIndex     int       // in the heap, or notInHeap
	beingChecked  bool      // it is being checked
	checkAgain    bool      // and is to be checked once more
	waitsForSlot  bool      // it waits for a slot
	slotReserved  bool      // a free slot is kept for its next check
	unassigned    bool      // it does not belong to this member any more
	stale         bool      // another member has changed the state
	reportedAhead time.Time // the tick that was last reported as held by the ensemble's clock
}

func newDispatcher(ctx context.Context, report *reporter, clock *tickClock, slots *runSlots) *dispatcher {
	return &dispatcher{ctx: ctx, report: report, clock: clock, slots: slots, wakeUp: make(chan struct{}, 1),
		jobs: map[string]*dueJob{}}
}

// waitForDue waits for what is due until the member session ends.
func (d *dispatcher) waitForDue() {
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
		if dispute != nil { // reported without the lock, since the function of WithOnEvent may call the scheduler
			d.report.warn("this machine's clock and the ensemble's differ about a tick", "job", dispute.Job,
				"tick", dispute.Run.Tick, "kind", dispute.Kind, "error", dispute.Err)
			d.report.passEvent(*dispute)
		}
	}
}

// lookForDue makes waitForDue look for due jobs at once.
func (d *dispatcher) lookForDue() {
	select {
	case d.wakeUp <- struct{}{}:
	default:
	}
}

// enqueueDue enqueues the due jobs, and the waiting jobs for which slots are free. It returns the
// time until it should be called again, and an event to report if the clocks differ about a tick.
func (d *dispatcher) enqueueDue() (pause time.Duration, dispute *Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if next := d.due.first(); next != nil {
		if how := d.clock.disputeAbout(next.due); how != clocksAgree {
			dispute = d.reportDispute(next, how)
		}
	}
	now := d.clock.now()
	for j := d.due.first(); j != nil && !j.due.After(now); j = d.due.first() {
		d.enqueueJob(j)
	}
	for len(d.waitingForSlot) > 0 && d.slots.freeSlots() > d.reservedSlots {
		j := d.waitingForSlot[0]
		d.waitingForSlot, j.waitsForSlot = d.waitingForSlot[1:], false
		if !j.unassigned {
			j.slotReserved = true
			d.reservedSlots++
			d.enqueueJob(j)
		}
	}
	next := d.due.first()
	if next == nil {
		return d.maxPause, dispute
	}
	pause = min(d.maxPause, next.due.Sub(now))
	if d.clock.disputeAbout(next.due) != clocksAgree {
		pause = min(pause, askTimeAfter)
	}
	return pause, dispute
}

// reportDispute returns the event that reports that the clocks differ about a tick: once for each
// tick that waits for the ensemble's clock, and for each time in which this machine's is behind. If
// the estimate of the ensemble's clock is old, it only asks for the ensemble's time. The dispatcher
// is locked.
func (d *dispatcher) reportDispute(j *dueJob, how clockDispute) *Event {
	if d.clock.isStale() {
		if !d.askingTime {
			d.askingTime = true
			d.tasks.Start(d.refreshClock)
		}
		return nil // the answer will show which clock is right
	}
	kind := EventAhead
	switch {
	case how == localIsBehind:
		kind = EventBehind
		reported := !d.lastBehind.IsZero() && time.Since(d.lastBehind) < recoveredAfter
		if d.lastBehind = time.Now(); reported {
			return nil
		}
	case j.reportedAhead.Equal(j.due):
		return nil
	default:
		j.reportedAhead = j.due
	}
	name := j.owned.job.Name
	return &Event{Kind: kind, Job: name, Run: Run{Job: name, Tick: j.due.UTC()}, Err: d.clock.differenceError()}
}

// refreshClock makes the estimate of the ensemble's clock anew.
func (d *dispatcher) refreshClock() {
	err := d.askTime(d.ctx)
	d.mu.Lock()
	d.askingTime = false
	d.mu.Unlock()
	if err == nil {
		d.lookForDue()
	}
}

// enqueueJob enqueues a job for a check. A job that is being checked is checked once more. The
// dispatcher is locked.
func (d *dispatcher) enqueueJob(j *dueJob) {
	switch {
	case j.unassigned:
		return
	case j.beingChecked:
		j.checkAgain = true
		return
	}
	j.beingChecked = true
	d.due.removeJob(j)
	d.ready = append(d.ready, j)
	if d.workers < maxWorkers && d.ctx.Err() == nil {
		d.workers++
		d.tasks.Start(d.checkReadyJobs) // in vain if the member session has ended meanwhile
	}
}

// checkReadyJobs checks the jobs that are ready.
func (d *dispatcher) checkReadyJobs() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ready) > 0 && d.ctx.Err() == nil {
		j := d.ready[0]
		d.ready = d.ready[1:]
		stale, reserved := j.stale, j.slotReserved
		j.checkAgain, j.stale, j.slotReserved = false, false, false
		// A job that is due again as soon as its run ends must not take the slot for which another
		// one waits.
		mayTakeSlot := reserved || d.slots.freeSlots() > len(d.waitingForSlot)+d.reservedSlots
		d.mu.Unlock()
		next, waits := j.owned.checkJob(stale, mayTakeSlot)
		d.mu.Lock()
		j.beingChecked = false
		if reserved {
			d.reservedSlots--
		}
		if waits && !j.waitsForSlot {
			j.waitsForSlot = true
			d.waitingForSlot = append(d.waitingForSlot, j)
		}
		if j.checkAgain {
			d.enqueueJob(j)
		} else if !j.unassigned {
			d.due.reschedule(j, next)
		}
		d.lookForDue()
	}
	d.workers--
}

// recheckJob enqueues a job if it belongs to this member. known is the cache that has the job's
// present state, or nil if another member has changed the state.
func (d *dispatcher) recheckJob(job string, known *stateCache) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j := d.jobs[job]; j != nil {
		j.stale = j.stale || j.owned.cache != known
		d.enqueueJob(j)
	}
}

// owns reports whether a job belongs to this member.
func (d *dispatcher) owns(job string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs[job] != nil
}

// assignJobs takes the jobs that belong to this member, and gives up the others and outdated
// definitions. decide returns this member's jobs and whether each belongs to it. assignJobs calls
// it with the lock, so that the last of several calls uses the latest facts.
func (d *dispatcher) assignJobs(decide func() (jobs []*job, mine func(*job) bool), own func(*job) *ownedJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	jobs, mine := decide()
	for _, j := range jobs {
		if present := d.jobs[j.Name]; present != nil && present.owned.job != j {
			d.unassignDueJob(present) // the job was updated, or has come back
		}
		if !j.entered.Load() {
			continue // a check would take it for removed
		}
		switch present, belongs := d.jobs[j.Name], mine(j); {
		case belongs && present == nil:
			added := &dueJob{owned: own(j), heapIndex: notInHeap}
			d.jobs[j.Name] = added
			d.enqueueJob(added)
		case !belongs && present != nil:
			d.unassignDueJob(present)
		}
	}
}

// unassignJob ends the checks of a definition of a job.
func (d *dispatcher) unassignJob(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if present := d.jobs[j.Name]; present != nil && present.owned.job == j {
		d.unassignDueJob(present)
	}
}

func (d *dispatcher) unassignDueJob(j *dueJob) {
	j.unassigned = true
	if j.slotReserved {
		j.slotReserved = false
		d.reservedSlots--
	}
	d.due.removeJob(j)
	delete(d.jobs, j.owned.job.Name)
}

const notInHeap = -1

// dueHeap is jobs by when they are due, the first on top.
type dueHeap []*dueJob

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, k int) bool { return h[i].due.Before(h[k].due) }
func (h dueHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].heapIndex, h[k].heapIndex = i, k
}

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) {
	j := x.(*dueJob)
	j.heapIndex = len(*h)
	*h = append(*h, j)
}

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	j.heapIndex = notInHeap
	return j
}

// reschedule moves a job to its place by a new due time. A job with the zero time leaves the heap.
func (h *dueHeap) reschedule(j *dueJob, due time.Time) {
	h.removeJob(j)
	if j.due = due; !due.IsZero() {
		heap.Push(h, j)
	}
}

func (h *dueHeap) removeJob(j *dueJob) {
	if j.heapIndex != notInHeap {
		heap.Remove(h, j.heapIndex)
	}
}

// first is the job that is due next, or nil.
func (h dueHeap) first() *dueJob {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}
