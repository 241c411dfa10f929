package framework

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/internal/link"
)

// deletions are a session's deletions in the background that have no answer yet. On each new connection they are the first requests: whoever was told that
// a deletion is queued may rely on that what it asks for reaches the servers later.
type deletions struct {
	s *Session

	mu      sync.Mutex
	ended   bool
	waiting map[*Discarded]int64 // in which place each was asked for
	asked   int64
}

func (ds *deletions) init(s *Session) { ds.s, ds.waiting = s, map[*Discarded]int64{} }

// start asks for a deletion. Without a connection it is asked for on the next one.
func (ds *deletions) start(d *Discarded) {
	ds.mu.Lock()
	if ds.ended {
		ds.mu.Unlock()
		d.end(0)
		return
	}
	ds.asked++
	ds.waiting[d] = ds.asked
	queued := ds.s.mon.Send(ds.call(d)) // with mu held: resume sends it again, or before
	ds.mu.Unlock()
	if queued {
		d.written()
	}
}

// resume hands those that wait to admit, which lets requests pass on a new connection.
func (ds *deletions) resume(admit func(first []*link.Call)) {
	ds.mu.Lock()
	again := slices.SortedFunc(maps.Keys(ds.waiting), func(a, b *Discarded) int { return cmp.Compare(ds.waiting[a], ds.waiting[b]) })
	calls := make([]*link.Call, len(again))
	for i, d := range again {
		calls[i] = ds.call(d)
	}
	admit(calls)
	ds.mu.Unlock()
	for _, d := range again {
		d.written()
	}
}

// call prepares one try. It never locks mu when the request has no answer, since it may be called with mu held then.
func (ds *deletions) call(d *Discarded) *link.Call {
	return deletion(ds.s.client.ns.full(d.path), func(r link.Reply) {
		err := replyError(r)
		switch {
		case r.Err != nil: // it waits for the next connection
		case deleted(err):
			ds.s.owned.deleted(ds.s.client.ns.full(d.path))
			if ds.settle(d) {
				d.written()
				if err != nil {
					r.Zxid = 0
				}
				d.end(r.Zxid)
			}
		default:
			if ds.settle(d) {
				go d.insist(d.path)
			}
		}
	})
}

// settle takes a deletion out, and tells whether it was there.
func (ds *deletions) settle(d *Discarded) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, waits := ds.waiting[d]
	delete(ds.waiting, d)
	return waits
}

// end ends all that wait: the session is over, and the nodes with it.
func (ds *deletions) end() {
	ds.mu.Lock()
	ds.ended = true
	waiting := ds.waiting
	ds.waiting = map[*Discarded]int64{}
	ds.mu.Unlock()
	for d := range waiting {
		d.end(0)
	}
}
