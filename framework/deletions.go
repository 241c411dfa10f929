package framework

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Discarded is a deletion in the background.
type Discarded struct {
	tasks  *background.Tasks // counts it
	done   chan struct{}
	once   sync.Once
	queued func()

	// Guarded by the session's deletions until done is closed.
	zxid    int64
	paths   []string // that are still to be deleted
	refused []string // that are deleted after the others: the servers have refused them
	own     Created  // is deleted too while it is this session's node, unless its path is ""
	looked  bool     // the servers have said whether it is, and no request was sent since
	ours    bool     // what they have said
	try     int      // the number of the latest try
	retries *backoff.Backoff
}

// Done is closed when the nodes are gone or the session has ended.
func (d *Discarded) Done() <-chan struct{} { return d.done }

// Zxid is the transaction that deleted the node, or 0 when it is not known. It may be asked for once
// Done is closed.
func (d *Discarded) Zxid() int64 { return d.zxid }

func (d *Discarded) markWritten() {
	if d.queued != nil {
		d.once.Do(d.queued)
	}
}

// finish tells that the nodes are gone, or that there is no session to delete them in.
func (d *Discarded) finish() {
	close(d.done)
	d.tasks.End()
}

// pendingDeletions are a session's deletions in the background that have no answer yet. On each new connection they are the first requests: a caller that was told
// that a deletion is queued may rely on its own later requests reaching the servers later.
//
// A deletion is one try after the other: a look at the own node, if it has one, and the request that deletes. A try without an answer is over with its connection.
// The next connection begins another one.
type pendingDeletions struct {
	transport *transport
	owned     *ownedBytes
	log       *slog.Logger

	mu      sync.Mutex
	ended   bool
	waiting map[*Discarded]int64 // in which place each was asked for
	asked   int64
}

func (ds *pendingDeletions) init(t *transport, owned *ownedBytes, log *slog.Logger) {
	ds.transport, ds.owned, ds.log, ds.waiting = t, owned, log, map[*Discarded]int64{}
}

// requestDeletion asks for a deletion. Without a connection it is asked for on the next one.
func (ds *pendingDeletions) requestDeletion(d *Discarded) {
	ds.mu.Lock()
	if ds.ended {
		ds.mu.Unlock()
		d.finish()
		return
	}
	ds.asked++
	ds.waiting[d] = ds.asked
	ds.beginTry(d)
}

// beginTry begins a try, and unlocks mu. It keeps mu until the request is queued, so that resend begins a try before that or after it.
func (ds *pendingDeletions) beginTry(d *Discarded) {
	if d.own.Path != "" && !d.looked {
		ds.transport.mon.Send(ds.ownershipRequest(d)...)
		ds.mu.Unlock()
		return
	}
	call := ds.deleteRequest(d)
	queued := call != nil && ds.transport.mon.Send(call)
	ds.mu.Unlock()
	switch {
	case call == nil:
		ds.endAsDeleted(d)
	case queued:
		d.markWritten()
	}
}

// isLatestTry reports whether a deletion waits for the outcome of the try of this number. Guarded by mu.
func (ds *pendingDeletions) isLatestTry(d *Discarded, try int) bool {
	_, waits := ds.waiting[d]
	return waits && d.try == try
}

// resend hands those that wait to admit, which lets requests pass on a new connection. An own node is looked at first, and deleted when the answer comes. That is
// still before what others ask: they wait for the proof of life, which is asked behind the look and takes two round trips.
func (ds *pendingDeletions) resend(admit func(first []*link.Call)) {
	ds.mu.Lock()
	again := slices.SortedFunc(maps.Keys(ds.waiting), func(a, b *Discarded) int { return cmp.Compare(ds.waiting[a], ds.waiting[b]) })
	var calls []*link.Call
	var queued, gone []*Discarded // gone: no node is left to delete
	for _, d := range again {
		if d.own.Path != "" {
			calls = append(calls, ds.ownershipRequest(d)...)
			continue
		}
		call := ds.deleteRequest(d)
		if call == nil {
			gone = append(gone, d)
			continue
		}
		calls, queued = append(calls, call), append(queued, d)
	}
	admit(calls)
	ds.mu.Unlock()
	for _, d := range queued {
		d.markWritten()
	}
	for _, d := range gone {
		ds.endAsDeleted(d)
	}
}

// ownershipRequest prepares the question whether the own node is still this session's. Guarded by mu. The calls of this type do not lock mu when there is no answer, since
// they may be called with mu held then.
//
// A sync comes before each look but the first. The answer to a former deletion may have been lost: this server may not have seen yet that the node was deleted, and
// made anew by another session.
func (ds *pendingDeletions) ownershipRequest(d *Discarded) (calls []*link.Call) {
	var unsynced error
	if d.try > 0 {
		calls = append(calls, &link.Call{Op: wire.OpSync, Body: &wire.PathRequest{Path: ds.transport.ns.serverPath("/")}, Done: func(r link.Reply) {
			unsynced = replyError(r)
		}})
	}
	d.try++
	try := d.try
	return append(calls, &link.Call{Op: wire.OpExists, Body: &wire.WatchRequest{Path: ds.transport.ns.serverPath(d.own.Path)}, Done: func(r link.Reply) {
		if r.Err != nil {
			return // the next connection begins another try
		}
		o := readAnswer(r, readStat)
		switch {
		case unsynced != nil:
			ds.retryAfterPause(d, try, unsynced)
			return
		case o.err != nil && !errors.Is(o.err, ErrNoNode):
			ds.retryAfterPause(d, try, o.err)
			return
		}
		ds.mu.Lock()
		if !ds.isLatestTry(d, try) {
			ds.mu.Unlock()
			return
		}
		d.looked, d.ours = true, o.err == nil && o.v.stat.Czxid == d.own.Zxid
		ds.beginTry(d)
	}})
}

// deleteRequest prepares the request that deletes, or returns nil if no node is left. Guarded by mu.
func (ds *pendingDeletions) deleteRequest(d *Discarded) *link.Call {
	d.try++
	try := d.try
	d.looked = false
	var paths []string
	for _, path := range d.paths {
		paths = append(paths, ds.transport.ns.serverPath(path))
	}
	if d.own.Path != "" && d.ours {
		paths = append(paths, ds.transport.ns.serverPath(d.own.Path))
	}
	switch len(paths) {
	case 0:
		return nil
	case 1:
		return &link.Call{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: paths[0], Number: AnyVersion}, Done: func(r link.Reply) {
			if r.Err == nil {
				ds.tryAnswered(d, try, paths, 0, r.Zxid, replyError(r))
			}
		}}
	}
	parts := make([]wire.MultiPart, len(paths))
	for i, path := range paths {
		parts[i] = deleteOpPart(path, AnyVersion)
	}
	return &link.Call{Op: wire.OpMulti, Body: &wire.MultiRequest{Parts: parts}, Done: func(r link.Reply) {
		if r.Err == nil {
			o := readAnswer(r, readResults)
			culprit := slices.IndexFunc(o.v, func(r OpResult) bool { return r.Err != nil })
			ds.tryAnswered(d, try, paths, culprit, o.zxid, cmp.Or(o.err, refusalError(o.v)))
		}
	}}
}

// tryAnswered takes in the answer to a try that was to delete these full paths. The path of index culprit is the one that the servers have refused to delete; it is
// negative if they have refused the request as a whole.
func (ds *pendingDeletions) tryAnswered(d *Discarded, try int, paths []string, culprit int, zxid int64, err error) {
	missing := errors.Is(err, ErrNoNode) && culprit >= 0 && culprit < len(paths)
	switch {
	case err == nil:
		ds.owned.removeDeleted(paths...)
	case missing:
		ds.owned.removeDeleted(paths[culprit])
	}
	ds.mu.Lock()
	if !ds.isLatestTry(d, try) {
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
		ds.retryAfterPause(d, try, err)
		return
	}
	if len(d.paths) == 0 && d.own.Path == "" {
		d.paths, d.refused = d.refused, nil
	}
	ds.beginTry(d)
}

// retryAfterPause begins another try after a pause, unless there is a later one by then. The servers have refused this one, with err.
func (ds *pendingDeletions) retryAfterPause(d *Discarded, try int, err error) {
	ds.mu.Lock()
	pause, path := d.retries.Next(), d.own.Path
	if len(d.paths) > 0 {
		path = d.paths[0]
	}
	ds.mu.Unlock()
	if !IsTransient(err) {
		ds.log.Warn("a node could not be deleted yet", "path", path, "error", err)
	}
	go func() {
		if backoff.Pause(ds.transport.session, pause) != nil {
			if ds.removeDeletion(d) {
				d.finish()
			}
			return
		}
		ds.mu.Lock()
		if !ds.isLatestTry(d, try) {
			ds.mu.Unlock()
			return
		}
		ds.beginTry(d)
	}()
}

// endAsDeleted ends a deletion after its nodes are gone.
func (ds *pendingDeletions) endAsDeleted(d *Discarded) {
	if ds.removeDeletion(d) {
		d.markWritten()
		d.finish()
	}
}

// removeDeletion takes a deletion out, and reports whether it was there.
func (ds *pendingDeletions) removeDeletion(d *Discarded) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, waits := ds.waiting[d]
	delete(ds.waiting, d)
	return waits
}

// endAll ends all that wait: the session is over, and the nodes with it.
func (ds *pendingDeletions) endAll() {
	ds.mu.Lock()
	ds.ended = true
	waiting := ds.waiting
	ds.waiting = map[*Discarded]int64{}
	ds.mu.Unlock()
	for d := range waiting {
		d.finish()
	}
}
