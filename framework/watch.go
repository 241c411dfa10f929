package framework

import (
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// watchKind is the kind of change that a watch waits for.
type watchKind int

const (
	watchData watchKind = iota
	watchExists
	watchChildren
)

var eventKinds = map[wire.EventType]EventKind{
	wire.EventNodeCreated: NodeCreated, wire.EventNodeDeleted: NodeDeleted,
	wire.EventNodeDataChanged: NodeChanged, wire.EventNodeChildrenChanged: ChildrenChanged,
}

// endedKinds are the kinds of watches that an event ends.
var endedKinds = map[EventKind][]watchKind{
	NodeCreated:     {watchExists, watchData},
	NodeDeleted:     {watchData, watchExists, watchChildren},
	NodeChanged:     {watchData, watchExists},
	ChildrenChanged: {watchChildren},
}

// Watch waits for the next change of a node. Any number of them share one watch on the server.
type Watch struct {
	entry     *watchEntry
	transient bool       // the server's watch is removed with the last waiter
	event     chan Event // has room for the one event
	// if not nil, gets the event in place of the channel; runs under the mutex of the watches, and
	// must not block
	tell func(Event)
}

// C receives the event, once. It stays empty after Stop.
func (w *Watch) C() <-chan Event { return w.event }

// Stop ends the wait. The server's watch on an existing node stays until the node changes next, for
// later waiters. The server's watch on a missing node is removed with its last waiter, since the
// node may never be created.
func (w *Watch) Stop() { w.entry.removeWaiter(w) }

// sharedWatches are a session's shared watches.
//
// A server keeps a watch until it fires, one of each kind for each node and connection. So a
// request sets one only if none is armed.
type sharedWatches struct {
	// asking keeps a read that relies on an armed watch behind the request that arms it.
	asking sync.Mutex

	caller *caller

	mu      sync.Mutex
	entries map[watchKey]*watchEntry
}

type watchKey struct {
	kind watchKind
	full string
}

type watchEntry struct {
	watches *sharedWatches
	key     watchKey

	// Guarded by watches.mu.
	armed bool
	// the server's watch is removed with the last waiter: the node was missing when it was armed,
	// or the entry is transient
	removable bool
	transient bool // a waiter is or was transient
	waiting   map[*Watch]bool
}

func (ws *sharedWatches) init(c *caller) { ws.caller, ws.entries = c, map[watchKey]*watchEntry{} }

// addWaiter adds a waiter before the node is read, so that no event is missed.
func (ws *sharedWatches) addWaiter(key watchKey, transient bool) *Watch {
	w := &Watch{transient: transient, event: make(chan Event, 1)}
	ws.joinEntry(key, w)
	return w
}

func (ws *sharedWatches) joinEntry(key watchKey, w *Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	e := ws.entries[key]
	if e == nil {
		e = &watchEntry{watches: ws, key: key, waiting: map[*Watch]bool{}}
		ws.entries[key] = e
	}
	e.transient = e.transient || w.transient
	w.entry = e
	e.waiting[w] = true
}

func (e *watchEntry) removeWaiter(w *Watch) {
	// requests for the watch from now on are sent behind its removal
	e.watches.asking.Lock()
	defer e.watches.asking.Unlock()
	if e.takeOutWaiter(w) {
		e.watches.caller.transport.Send(&link.Call{
			Op:   wire.OpRemoveWatches,
			Body: &wire.NumberRequest{Path: e.key.full, Number: wire.WatcherData},
			Done: func(r link.Reply) {
				// another refusal means that the watch has fired
				if err := replyError(r); errors.Is(err, ErrOverloaded) || errors.Is(err, errQueueFull) {
					e.removeLater()
				}
			},
		})
	}
}

// takeOutWaiter removes a waiter, and reports whether to remove the server's watch too. A server
// has one watch for data and existence together, so it stays while the other kind has an entry; the
// last of the two entries removes it.
func (e *watchEntry) takeOutWaiter(w *Watch) (remove bool) {
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	delete(e.waiting, w)
	remove = e.isOrphaned() && e.otherDataEntry() == nil
	if remove {
		e.armed, e.removable = false, false
	}
	e.forgetIfUnused()
	return remove
}

// otherDataEntry is the entry of the other kind that shares this one's watch on the server. It is
// nil if there is none. Guarded by watches.mu.
func (e *watchEntry) otherDataEntry() *watchEntry {
	switch e.key.kind {
	case watchData:
		return e.watches.entries[watchKey{watchExists, e.key.full}]
	case watchExists:
		return e.watches.entries[watchKey{watchData, e.key.full}]
	default:
		return nil
	}
}

// isOrphaned reports whether the server's watch is removable and has no waiter. Guarded by
// watches.mu.
func (e *watchEntry) isOrphaned() bool { return e.removable && len(e.waiting) == 0 }

// becomeRemovable marks the server's watch as removable, and returns its entry. If an event has
// ended this entry before the answer to the request that armed it, the watch belongs to the entry
// that waiters have made since, or to this one again. Guarded by watches.mu.
func (e *watchEntry) becomeRemovable() *watchEntry {
	present := e.watches.entries[e.key]
	if present == nil {
		present = e
		e.watches.entries[e.key] = e
	}
	present.removable = true
	return present
}

// removeLater repeats a removal that was not executed, after a pause.
func (e *watchEntry) removeLater() {
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	present := e.becomeRemovable()
	time.AfterFunc(e.watches.caller.cfg.RetryMax, func() {
		e.watches.mu.Lock()
		defer e.watches.mu.Unlock()
		present.scheduleRemoval()
	})
}

// scheduleRemoval removes the server's watch in the background if it has no waiter. Guarded by
// watches.mu.
func (e *watchEntry) scheduleRemoval() {
	if e.isOrphaned() {
		go e.removeWaiter(nil)
	}
}

// forgetIfUnused forgets an entry without waiters and without a watch on a server. The watch of the
// other kind may have stayed for this entry only. Guarded by watches.mu.
func (e *watchEntry) forgetIfUnused() {
	if len(e.waiting) > 0 || e.armed || e.removable || e.watches.entries[e.key] != e {
		return
	}
	delete(e.watches.entries, e.key)
	if other := e.otherDataEntry(); other != nil {
		other.scheduleRemoval()
	}
}

// armOnce marks the entry as armed before the request that arms it, and reports whether that
// request is needed. A forgotten entry is not armed: it has no waiter, and the event of its watch
// would find no entry, or another one.
func (e *watchEntry) armOnce() bool {
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	if e.armed || e.watches.entries[e.key] != e {
		return false
	}
	e.armed = true
	return true
}

// onWatchEvent handles a server's event. The receiving goroutine calls it: it must not block. The
// event's path is the servers'.
func (ws *sharedWatches) onWatchEvent(event wire.WatchEvent) {
	ev := Event{Kind: eventKinds[event.Type], Path: event.Path}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, kind := range endedKinds[ev.Kind] {
		if e := ws.entries[watchKey{kind, ev.Path}]; e != nil {
			e.endWithEvent(ev)
		}
	}
}

// onReconnect ends all watches with the event Reconnected, so that waiters read again: the watches
// of the connection before are gone, and a change may have been missed.
func (ws *sharedWatches) onReconnect() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, e := range ws.entries {
		e.endWithEvent(Event{Kind: Reconnected})
	}
}

// endWithEvent ends the server's watch, and hands its event to all waiters. Guarded by watches.mu.
func (e *watchEntry) endWithEvent(ev Event) {
	e.tellWaiters(ev)
	e.armed, e.removable = false, false
	e.forgetIfUnused()
}

// tellWaiters hands an event, with the client's path, to all waiters, which ends their waits.
// Guarded by watches.mu.
func (e *watchEntry) tellWaiters(ev Event) {
	ev.Path = e.watches.caller.ns.clientPath(e.key.full)
	for w := range e.waiting {
		if w.tell != nil {
			w.tell(ev)
		} else {
			w.event <- ev // has room: a watch gets one event
		}
	}
	clear(e.waiting)
}

// watchReads are the requests that set a watch of each kind.
var watchReads = [...]struct {
	op   wire.Op
	read func(*wire.Decoder) readResult
}{
	watchData:     {wire.OpGetData, decodeData},
	watchExists:   {wire.OpExists, decodeStatOnly},
	watchChildren: {wire.OpGetChildren2, decodeNames},
}

// readNode reads the node. The read arms the entry's watch, or is sent behind the request that arms
// it.
func (e *watchEntry) readNode(a requester) (readResult, error) {
	f := make(future[readResult], 1)
	e.watches.asking.Lock()
	a.caller.transport.Send(e.prepareRead(e.armOnce(),
		func(r link.Reply) { f <- decodeAnswer(r, watchReads[e.key.kind].read) }))
	e.watches.asking.Unlock()
	o := waitForOutcome(a.ctx, a.caller, f)
	o.v.zxid = o.zxid
	return o.v, o.err
}

// prepareRead prepares a read, which also arms the watch if arm is true. The entry gets the
// answer, also when the caller has given up by then.
func (e *watchEntry) prepareRead(arm bool, done func(link.Reply)) *link.Call {
	body := &wire.WatchRequest{Path: e.key.full, Watch: arm}
	return &link.Call{Op: watchReads[e.key.kind].op, Body: body, Done: func(r link.Reply) {
		if arm {
			e.recordOutcome(replyError(r))
		}
		done(r)
	}}
}

// setNoWatch reports whether a read with this outcome has set no watch.
func (e *watchEntry) setNoWatch(err error) bool {
	return err != nil && !(e.key.kind == watchExists && errors.Is(err, ErrNoNode))
}

// recordOutcome records the outcome of a request for the watch. If it has set no watch, waiters
// that have joined meanwhile get an event that says so. After a lost connection they get the event
// Reconnected on the next one instead.
func (e *watchEntry) recordOutcome(err error) {
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	if !e.setNoWatch(err) {
		if err != nil || e.transient {
			e.becomeRemovable().scheduleRemoval()
		}
		return
	}
	e.armed = false
	switch {
	case errors.Is(err, ErrSuspended):
		e.forgetIfUnused()
	case errors.Is(err, ErrNoNode):
		e.endWithEvent(Event{Kind: NodeDeleted})
	default: // the watch of an earlier request may still be there
		e.tellWaiters(Event{Err: err})
		e.scheduleRemoval()
		e.forgetIfUnused()
	}
}

// WatchNodes watches nodes for a change or their deletion. It sends the requests together and
// returns at once. The event of a missing node is NodeDeleted. An event with an error says why a
// node is not watched.
func (s *Session) WatchNodes(paths ...string) []*Watch {
	out, keys := make([]*Watch, len(paths)), make([]watchKey, len(paths))
	for i, path := range paths {
		out[i], keys[i] = &Watch{event: make(chan Event, 1)}, watchKey{watchData, s.caller.ns.serverPath(path)}
	}
	s.watches.armWatches(keys, out)
	return out
}

// armWatches adds watches and sends the requests for those that are not armed. It returns at once.
func (ws *sharedWatches) armWatches(keys []watchKey, watches []*Watch) {
	var calls []*link.Call
	ws.asking.Lock()
	defer ws.asking.Unlock()
	for i, w := range watches {
		ws.joinEntry(keys[i], w)
		if e := w.entry; e.armOnce() {
			calls = append(calls, e.prepareRead(true, func(link.Reply) {}))
		}
	}
	if len(calls) > 0 {
		ws.caller.transport.Send(calls...)
	}
}
