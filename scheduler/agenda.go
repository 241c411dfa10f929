package scheduler

import (
	"container/heap"
	"time"
)

// post is a job that belongs to this member at present, and what the member knows of it.
type post struct {
	job  *job
	book *book

	// Guarded by the shift.
	due     time.Time // when to look next
	place   int       // in the agenda, or notListed
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

const notListed = -1

// agenda is the posts by when they are due, the first on top.
type agenda []*post

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, k int) bool { return a[i].due.Before(a[k].due) }
func (a agenda) Swap(i, k int) {
	a[i], a[k] = a[k], a[i]
	a[i].place, a[k].place = i, k
}

// Push is heap.Interface's.
func (a *agenda) Push(x any) {
	p := x.(*post)
	p.place = len(*a)
	*a = append(*a, p)
}

// Pop is heap.Interface's.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	p := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	p.place = notListed
	return p
}

// list puts a post where it belongs; one without a time is taken off.
func (a *agenda) list(p *post, due time.Time) {
	a.drop(p)
	if p.due = due; !due.IsZero() {
		heap.Push(a, p)
	}
}

func (a *agenda) drop(p *post) {
	if p.place != notListed {
		heap.Remove(a, p.place)
	}
}

// first is the post that is due next, or nil.
func (a agenda) first() *post {
	if len(a) == 0 {
		return nil
	}
	return a[0]
}
