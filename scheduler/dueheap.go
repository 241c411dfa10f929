package scheduler

import (
	"container/heap"
	"time"
)

// ownedJob is a job that belongs to this member at present, and what the member knows of it.
type ownedJob struct {
	job  *job
	book *stateCache

	// Guarded by the member session.
	due     time.Time // when to look next
	place   int       // in the heap, or notInHeap
	busy    bool      // it is being looked at
	again   bool      // and is to be looked at once more
	inLine  bool      // it waits for a slot
	left    bool      // it belongs to this member no more
	stale   bool      // somebody else has changed the state
	late    Reason    // why ticks were not run before this look
	ahead   time.Time // what was last reported as held by the ensemble's clock
	watched map[int64]bool
	pause   time.Duration // before the next try, when one has failed
	failed  time.Time
}

const notInHeap = -1

// dueHeap is the owned jobs by when they are due, the first on top.
type dueHeap []*ownedJob

func (a dueHeap) Len() int           { return len(a) }
func (a dueHeap) Less(i, k int) bool { return a[i].due.Before(a[k].due) }
func (a dueHeap) Swap(i, k int) {
	a[i], a[k] = a[k], a[i]
	a[i].place, a[k].place = i, k
}

// Push is heap.Interface's.
func (a *dueHeap) Push(x any) {
	p := x.(*ownedJob)
	p.place = len(*a)
	*a = append(*a, p)
}

// Pop is heap.Interface's.
func (a *dueHeap) Pop() any {
	last := len(*a) - 1
	p := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	p.place = notInHeap
	return p
}

// reschedule puts a owned job where it belongs; one without a time is taken off.
func (a *dueHeap) reschedule(p *ownedJob, due time.Time) {
	a.removeJob(p)
	if p.due = due; !due.IsZero() {
		heap.Push(a, p)
	}
}

func (a *dueHeap) removeJob(p *ownedJob) {
	if p.place != notInHeap {
		heap.Remove(a, p.place)
	}
}

// nextDue is the owned job that is due next, or nil.
func (a dueHeap) nextDue() *ownedJob {
	if len(a) == 0 {
		return nil
	}
	return a[0]
}
