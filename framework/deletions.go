package framework

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// backgroundDeletion is a deletion in the background; it implements primitives.Discarded.
type backgroundDeletion struct {
	tasks  *background.Tasks // counts it
	done   chan struct{}
	once   sync.Once
	queued func()

	// Guarded by the session's deletions until done is closed.
	zxid    int64
	paths   []string  // still to be deleted
	one     [1]string // holds the paths of most deletions
	refused []string  // paths that the servers have refused to delete; tried again after the others
	// is deleted only while it is this session's node; its path is "" if there is none
	own            primitives.Created
	ownershipKnown bool // the servers have said whether own is this session's, and no request was sent since
	isOwn          bool // their answer
	try            int  // the number of the latest try
	retries        *backoff.Backoff
	err            error // once done is closed: why the servers have not confirmed the deletion

	refusal atomic.Pointer[error] // the latest one
}

func (d *backgroundDeletion) Done() <-chan struct{} { return d.done }

func (d *backgroundDeletion) Zxid() int64 { return d.zxid }

func (d *backgroundDeletion) Err() error {
	select {
	case <-d.done:
		return d.err
	default:
	}
	if refusal := d.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

func (d *backgroundDeletion) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return failure.Unconfirmed(d.err)
	case <-ctx.Done():
		return failure.Unconfirmed(cmp.Or(d.Err(), failure.Ended(ctx)))
	}
}

func (d *backgroundDeletion) notifyQueued() {
	if d.queued != nil {
		d.once.Do(d.queued)
	}
}

// markDone ends the deletion: the nodes are deleted, or the session has ended with this error.
func (d *backgroundDeletion) markDone(err error) {
	d.err = err
	close(d.done)
	d.tasks.End()
}

// pendingDeletions are a session's deletions in the background that have no answer yet. On each new
// connection they are the first requests. So once a caller knows that a deletion is queued, its own
// later requests reach the servers after the deletion.
//
// A deletion is made of tries. A try reads who owns the own node, if the deletion has one, and then
// sends the request that deletes. A try without an answer ends with its connection, and the next
// connection begins another try.
type pendingDeletions struct {
	caller *caller
	owned  *ownedBytes
	log    *slog.Logger

	mu      sync.Mutex
	ended   bool
	waiting map[*backgroundDeletion]int64 // with the order in which they were requested
	asked   int64
}

func (ds *pendingDeletions) init(c *caller, owned *ownedBytes, log *slog.Logger) {
	ds.caller, ds.owned, ds.log, ds.waiting = c, owned, log, map[*backgroundDeletion]int64{}
}

// requestDeletion begins a deletion. Without a connection, the next connection begins it.
func (ds *pendingDeletions) requestDeletion(d *backgroundDeletion) {
	ds.mu.Lock()
	if ds.ended {
		ds.mu.Unlock()
		d.markDone(context.Cause(ds.caller.session))
		return
	}
	ds.asked++
	ds.waiting[d] = ds.asked
	ds.beginTry(d)
}

// beginTry begins a try, and unlocks mu. It keeps mu until the request is queued, so that resendAll
// begins its try either before or after this one.
func (ds *pendingDeletions) beginTry(d *backgroundDeletion) {
	if d.own.Path != "" && !d.ownershipKnown {
		ds.caller.transport.Send(ds.ownershipRequest(d)...)
		ds.mu.Unlock()
		return
	}
	call := ds.deleteRequest(d)
	queued := call != nil && ds.caller.transport.Send(call)
	ds.mu.Unlock()
	switch {
	case call == nil:
		ds.endAsDeleted(d)
	case queued:
		d.notifyQueued()
	}
}

// isLatestTry reports whether a deletion waits for the outcome of the try with this number. Guarded
// by mu.
func (ds *pendingDeletions) isLatestTry(d *backgroundDeletion, try int) bool {
	_, waits := ds.waiting[d]
	return waits && d.try == try
}

// resendAll begins a new try of each pending deletion. It hands the requests to admit, which sends
// them first and then lets others pass on a new connection. For an own node it asks for the owner
// first, and deletes the node when the answer comes. That is still before the requests of callers:
// they wait for the proof of life, which is sent behind the question and is answered after it.
func (ds *pendingDeletions) resendAll(admit func(first []*link.Call)) {
	ds.mu.Lock()
	again := slices.SortedFunc(maps.Keys(ds.waiting),
		func(a, b *backgroundDeletion) int { return cmp.Compare(ds.waiting[a], ds.waiting[b]) })
	var calls []*link.Call
	var queued, gone []*backgroundDeletion // gone: no node is left to delete
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
		d.notifyQueued()
	}
	for _, d := range gone {
		ds.endAsDeleted(d)
	}
}

// ownershipRequest prepares the question whether the own node is still this session's. Guarded by
// mu. Its Done function does not lock mu when the connection is lost, since mu may be held then.
//
// A transaction without effect (see requester.sync) comes before each question but the first. The
// answer to an earlier deletion may have been lost: this server may not have seen yet that the node
// was deleted, and created again by another session.
func (ds *pendingDeletions) ownershipRequest(d *backgroundDeletion) (calls []*link.Call) {
	var unsynced error
	if d.try > 0 {
		check := []wire.MultiPart{checkOpPart(ds.caller.ns.serverPath("/"), AnyVersion)}
		calls = append(calls, &link.Call{Op: wire.OpMulti, Body: &wire.MultiRequest{Parts: check},
			Done: func(r link.Reply) {
				unsynced = replyError(r)
			}})
	}
	d.try++
	try := d.try
	return append(calls, &link.Call{Op: wire.OpExists,
		Body: &wire.WatchRequest{Path: ds.caller.ns.serverPath(d.own.Path)}, Done: func(r link.Reply) {
			if r.Err != nil {
				return // the next connection begins another try
			}
			o := decodeAnswer(r, decodeStatOnly)
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
			d.ownershipKnown, d.isOwn = true, o.err == nil && o.v.stat.Czxid == d.own.Zxid
			ds.beginTry(d)
		}})
}

// deleteRequest prepares the request that deletes, or returns nil if no node is left. Guarded by
// mu.
func (ds *pendingDeletions) deleteRequest(d *backgroundDeletion) *link.Call {
	d.try++
	try := d.try
	d.ownershipKnown = false
	deletesOwn := d.own.Path != "" && d.isOwn
	if len(d.paths) == 0 && !deletesOwn { // the others are gone
		d.paths, d.refused = d.refused, nil
	}
	var paths []string
	for _, path := range d.paths {
		paths = append(paths, ds.caller.ns.serverPath(path))
	}
	if deletesOwn {
		paths = append(paths, ds.caller.ns.serverPath(d.own.Path))
	}
	switch len(paths) {
	case 0:
		return nil
	case 1:
		return &link.Call{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: paths[0], Number: AnyVersion},
			Done: func(r link.Reply) {
				if r.Err == nil {
					ds.tryAnswered(d, try, paths, deletionAnswer{0, r.Zxid, replyError(r)})
				}
			}}
	}
	parts := make([]wire.MultiPart, len(paths))
	for i, path := range paths {
		parts[i] = deleteOpPart(path, AnyVersion)
	}
	return &link.Call{Op: wire.OpMulti, Body: &wire.MultiRequest{Parts: parts}, Done: func(r link.Reply) {
		if r.Err == nil {
			o := decodeAnswer(r, decodeResults)
			culprit := slices.IndexFunc(o.v, func(r OpResult) bool { return r.Err != nil })
			ds.tryAnswered(d, try, paths, deletionAnswer{culprit, o.zxid, cmp.Or(o.err, refusalError(o.v))})
		}
	}}
}

// deletionAnswer is the servers' answer to a try to delete.
type deletionAnswer struct {
	// the index of the path that the servers have refused to delete, or negative if they have
	// refused the request as a whole
	culprit int
	zxid    int64
	err     error
}

// tryAnswered records the answer to a try to delete these full paths.
func (ds *pendingDeletions) tryAnswered(d *backgroundDeletion, try int, paths []string, answer deletionAnswer) {
	culprit, err := answer.culprit, answer.err
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
		d.zxid, d.own, d.paths, d.refused = answer.zxid, primitives.Created{}, d.refused, nil
	case missing && culprit == len(d.paths):
		d.own = primitives.Created{}
	case missing:
		d.paths = slices.Delete(d.paths, culprit, culprit+1)
	case culprit >= 0 && culprit < len(d.paths) && len(paths) > 1: // the other paths go first
		d.refused = append(d.refused, d.paths[culprit])
		d.paths = slices.Delete(d.paths, culprit, culprit+1)
	default:
		d.paths, d.refused = append(d.paths, d.refused...), nil
		ds.mu.Unlock()
		ds.retryAfterPause(d, try, err)
		return
	}
	ds.beginTry(d)
}

// retryAfterPause begins another try after a pause, unless a later try has begun by then. The
// servers have refused this one with err.
func (ds *pendingDeletions) retryAfterPause(d *backgroundDeletion, try int, err error) {
	ds.mu.Lock()
	pause, path := d.retries.Next(), d.own.Path
	if len(d.paths) > 0 {
		path = d.paths[0]
	}
	ds.mu.Unlock()
	if !failure.IsTransient(err) {
		d.refusal.Store(&err)
		ds.log.Warn("a node could not be deleted yet; the client tries again", "path", path, "error", err)
	}
	go func() {
		if backoff.Pause(ds.caller.session, pause) != nil {
			if ds.removeDeletion(d) {
				d.markDone(context.Cause(ds.caller.session))
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

// endAsDeleted ends a deletion whose nodes are deleted.
func (ds *pendingDeletions) endAsDeleted(d *backgroundDeletion) {
	if ds.removeDeletion(d) {
		d.notifyQueued()
		d.markDone(nil)
	}
}

// removeDeletion removes a pending deletion, and reports whether it was pending.
func (ds *pendingDeletions) removeDeletion(d *backgroundDeletion) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, waits := ds.waiting[d]
	delete(ds.waiting, d)
	return waits
}

// endAll ends all pending deletions. The session has ended, and the servers delete its nodes.
func (ds *pendingDeletions) endAll() {
	ds.mu.Lock()
	ds.ended = true
	waiting := ds.waiting
	ds.waiting = map[*backgroundDeletion]int64{}
	ds.mu.Unlock()
	for d := range waiting {
		d.markDone(context.Cause(ds.caller.session))
	}
}
