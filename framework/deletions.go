package framework

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// deletions are a session's deletions in the background that have no answer yet. On each new connection they are the first requests: whoever was told that
// a deletion is queued may rely on that what it asks for reaches the servers later.
//
// A deletion is one try after the other: a look at the own node, if it has one, and the request that deletes. A try without an answer is over with its connection.
// The next connection begins another one.
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
		d.end()
		return
	}
	ds.asked++
	ds.waiting[d] = ds.asked
	ds.send(d)
}

// send begins a try, and unlocks mu. It keeps mu until the request is queued, so that resume begins a try before that or after it.
func (ds *deletions) send(d *Discarded) {
	if d.own.Path != "" && !d.looked {
		ds.s.mon.Send(ds.look(d)...)
		ds.mu.Unlock()
		return
	}
	call := ds.deletion(d)
	queued := call != nil && ds.s.mon.Send(call)
	ds.mu.Unlock()
	switch {
	case call == nil:
		ds.gone(d)
	case queued:
		d.written()
	}
}

// latest reports whether a deletion waits for the outcome of the try of this number. Guarded by mu.
func (ds *deletions) latest(d *Discarded, try int) bool {
	_, waits := ds.waiting[d]
	return waits && d.try == try
}

// resume hands those that wait to admit, which lets requests pass on a new connection. An own node is looked at first, and deleted when the answer comes. That is
// still before what others ask: they wait for the proof of life, which is asked behind the look and takes two round trips.
func (ds *deletions) resume(admit func(first []*link.Call)) {
	ds.mu.Lock()
	again := slices.SortedFunc(maps.Keys(ds.waiting), func(a, b *Discarded) int { return cmp.Compare(ds.waiting[a], ds.waiting[b]) })
	var calls []*link.Call
	var queued, gone []*Discarded // gone: nothing is left to delete
	for _, d := range again {
		if d.own.Path != "" {
			calls = append(calls, ds.look(d)...)
			continue
		}
		call := ds.deletion(d)
		if call == nil {
			gone = append(gone, d)
			continue
		}
		calls, queued = append(calls, call), append(queued, d)
	}
	admit(calls)
	ds.mu.Unlock()
	for _, d := range queued {
		d.written()
	}
	for _, d := range gone {
		ds.gone(d)
	}
}

// look prepares the question whether the own node is still this session's. Guarded by mu. The calls of this type do not lock mu when there is no answer, since
// they may be called with mu held then.
//
// A sync comes before each look but the first. The answer to a former deletion may have been lost: this server may not have seen yet that the node was deleted, and
// made anew by another session.
func (ds *deletions) look(d *Discarded) (calls []*link.Call) {
	var unsynced error
	if d.try > 0 {
		calls = append(calls, &link.Call{Op: wire.OpSync, Body: &wire.PathRequest{Path: ds.s.client.ns.full("/")}, Done: func(r link.Reply) {
			unsynced = replyError(r)
		}})
	}
	d.try++
	try := d.try
	return append(calls, &link.Call{Op: wire.OpExists, Body: &wire.WatchRequest{Path: ds.s.client.ns.full(d.own.Path)}, Done: func(r link.Reply) {
		if r.Err != nil {
			return // the next connection begins another try
		}
		o := answer(r, readStat)
		switch {
		case unsynced != nil:
			ds.retry(d, try, unsynced)
			return
		case o.err != nil && !errors.Is(o.err, ErrNoNode):
			ds.retry(d, try, o.err)
			return
		}
		ds.mu.Lock()
		if !ds.latest(d, try) {
			ds.mu.Unlock()
			return
		}
		d.looked, d.ours = true, o.err == nil && o.v.stat.Czxid == d.own.Zxid
		ds.send(d)
	}})
}

// deletion prepares the request that deletes, or returns nil if there is nothing left. Guarded by mu.
func (ds *deletions) deletion(d *Discarded) *link.Call {
	d.try++
	try := d.try
	d.looked = false
	var paths []string
	for _, path := range d.paths {
		paths = append(paths, ds.s.client.ns.full(path))
	}
	if d.own.Path != "" && d.ours {
		paths = append(paths, ds.s.client.ns.full(d.own.Path))
	}
	switch len(paths) {
	case 0:
		return nil
	case 1:
		return &link.Call{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: paths[0], Number: AnyVersion}, Done: func(r link.Reply) {
			if r.Err == nil {
				ds.answered(d, try, paths, 0, r.Zxid, replyError(r))
			}
		}}
	}
	parts := make([]wire.MultiPart, len(paths))
	for i, path := range paths {
		parts[i] = deletePart(path, AnyVersion)
	}
	return &link.Call{Op: wire.OpMulti, Body: &wire.MultiRequest{Parts: parts}, Done: func(r link.Reply) {
		if r.Err == nil {
			o := answer(r, readResults)
			culprit := slices.IndexFunc(o.v, func(r OpResult) bool { return r.Err != nil })
			ds.answered(d, try, paths, culprit, o.zxid, cmp.Or(o.err, refused(o.v)))
		}
	}}
}

// answered takes in the answer to a try that was to delete these full paths. The path of index culprit is the one that the servers have refused to delete; it is
// negative if they have refused the request as a whole.
func (ds *deletions) answered(d *Discarded, try int, paths []string, culprit int, zxid int64, err error) {
	missing := errors.Is(err, ErrNoNode) && culprit >= 0 && culprit < len(paths)
	switch {
	case err == nil:
		ds.s.owned.deleted(paths...)
	case missing:
		ds.s.owned.deleted(paths[culprit])
	}
	ds.mu.Lock()
	if !ds.latest(d, try) {
		ds.mu.Unlock()
		return
	}
	switch {
	case err == nil:
		d.zxid, d.own, d.paths, d.refused = zxid, Created{}, d.refused, nil
	case missing && culprit == len(d.paths):
		d.own = Created{}
	case missing:
		d.paths = slices.Delete(d.paths, culprit, culprit+1)
	case culprit >= 0 && culprit < len(d.paths) && len(paths) > 1: // it must not keep the others
		d.refused = append(d.refused, d.paths[culprit])
		d.paths = slices.Delete(d.paths, culprit, culprit+1)
	default:
		d.paths, d.refused = append(d.paths, d.refused...), nil
		ds.mu.Unlock()
		ds.retry(d, try, err)
		return
	}
	if len(d.paths) == 0 && d.own.Path == "" {
		d.paths, d.refused = d.refused, nil
	}
	ds.send(d)
}

// retry begins another try after a pause, unless there is a later one by then. The servers have refused this one, with err.
func (ds *deletions) retry(d *Discarded, try int, err error) {
	ds.mu.Lock()
	pause, path := d.retries.next(), d.own.Path
	if len(d.paths) > 0 {
		path = d.paths[0]
	}
	ds.mu.Unlock()
	if !IsTransient(err) {
		ds.s.client.log.Warn("a node could not be deleted yet", "path", path, "error", err)
	}
	go func() {
		if Pause(ds.s.ctx, pause) != nil {
			if ds.settle(d) {
				d.end()
			}
			return
		}
		ds.mu.Lock()
		if !ds.latest(d, try) {
			ds.mu.Unlock()
			return
		}
		ds.send(d)
	}()
}

// gone ends a deletion whose nodes are gone.
func (ds *deletions) gone(d *Discarded) {
	if ds.settle(d) {
		d.written()
		d.end()
	}
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
		d.end()
	}
}
