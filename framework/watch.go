package framework

import (
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// watchKind is what of a node is watched.
type watchKind int

const (
	watchData watchKind = iota
	watchExists
	watchChildren
)

// endedKinds tells which kinds of watch an event ends.
var endedKinds = map[EventKind][]watchKind{
	NodeCreated:     {watchExists, watchData},
	NodeDeleted:     {watchData, watchExists, watchChildren},
	NodeChanged:     {watchData, watchExists},
	ChildrenChanged: {watchChildren},
}

// Watch waits for the next change of a node. Any number of them share one watch on the server.
type Watch struct {
	entry *watchEntry
	event chan Event // holds the one event
}

// C gets the event, once. It stays empty after Stop.
func (w *Watch) C() <-chan Event { return w.event }

// Stop ends the wait. The server's watch on an existing node stays until the node changes next, for later
// waiters; one on a missing node, which may not come at all, is removed with its last waiter.
func (w *Watch) Stop() { w.entry.removeWaiter(w) }

// sharedWatches are a session's shared watches.
//
// A server keeps a watch until it fires, and one of a kind for each node and connection. So it is asked
// only where none is armed.
type sharedWatches struct {
	// asking keeps a read that relies on an armed watch behind the request that arms it.
	asking sync.Mutex

	transport *transport

	mu      sync.Mutex
	entries map[watchKey]*watchEntry
}

type watchKey struct {
	kind watchKind
	full string
}

type watchEntry struct {
	set *sharedWatches
	key watchKey

	// Guarded by set.mu.
	armed   bool
	absent  bool // the node was missing when the watch was armed
	waiting map[*Watch]bool
}

func (ws *sharedWatches) init(t *transport) { ws.transport, ws.entries = t, map[watchKey]*watchEntry{} }

// addWaiter adds a waiter before the node is read, so that no event is missed.
func (ws *sharedWatches) addWaiter(key watchKey) *Watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	e := ws.entries[key]
	if e == nil {
		e = &watchEntry{set: ws, key: key, waiting: map[*Watch]bool{}}
		ws.entries[key] = e
	}
	w := &Watch{entry: e, event: make(chan Event, 1)}
	e.waiting[w] = true
	return w
}

func (e *watchEntry) removeWaiter(w *Watch) {
	if e.key.kind == watchExists { // a watch that is asked for from now on is asked for behind its removal
		e.set.asking.Lock()
		defer e.set.asking.Unlock()
	}
	if e.takeOutWaiter(w) {
		e.set.transport.mon.Send(&link.Call{
			Op:   wire.OpRemoveWatches,
			Body: &wire.NumberRequest{Path: e.key.full, Number: wire.WatcherData},
			Done: func(link.Reply) {}, // a refusal says that it has fired
		})
	}
}

// takeOutWaiter takes a waiter out, and reports whether the server's watch is to go too. Servers know one watch for both
// kinds that tell of data, so it stays while the other kind has an entry.
func (e *watchEntry) takeOutWaiter(w *Watch) (remove bool) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	delete(e.waiting, w)
	remove = e.isOrphaned() && e.set.entries[watchKey{watchData, e.key.full}] == nil
	if remove {
		e.armed, e.absent = false, false
	}
	e.forgetIfUnused()
	return remove
}

// isOrphaned reports that a server watches a missing node without a waiter: for this entry, which is known or has had its event
// before the answer. Guarded by set.mu.
func (e *watchEntry) isOrphaned() bool {
	known := e.set.entries[e.key]
	return e.absent && len(e.waiting) == 0 && (known == e && e.armed || known == nil)
}

// scheduleRemoval has the server's watch removed if it has no waiter when it is set. Guarded by set.mu.
func (e *watchEntry) scheduleRemoval() {
	if e.key.kind == watchExists && e.isOrphaned() {
		go e.removeWaiter(nil)
	}
}

// forgetIfUnused forgets an entry without waiters that no server knows of.
func (e *watchEntry) forgetIfUnused() {
	if len(e.waiting) == 0 && !e.armed && e.set.entries[e.key] == e {
		delete(e.set.entries, e.key)
	}
}

// armOnce marks the entry before the server is asked, and reports whether it must be asked. A forgotten entry
// has no waiter: an event of its watch would find no entry, or another one.
func (e *watchEntry) armOnce() bool {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if e.armed || e.set.entries[e.key] != e {
		return false
	}
	e.armed = true
	return true
}

// onLibraryEvent is the library's callback: it must not block.
func (ws *sharedWatches) onLibraryEvent(ev Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, kind := range endedKinds[ev.Kind] {
		if e := ws.entries[watchKey{kind, ev.Path}]; e != nil {
			e.endWithEvent(ev)
		}
	}
}

// reconnected wakes every waiter to look again: what the library re-arms on a new connection may
// have missed a change in between.
func (ws *sharedWatches) reconnected() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for key, e := range ws.entries {
		e.endWithEvent(Event{Kind: Reconnected, Path: key.full})
	}
}

// endWithEvent ends the entry with an event.
func (e *watchEntry) endWithEvent(ev Event) {
	for w := range e.waiting {
		w.event <- ev // has room: a watch gets one event
	}
	clear(e.waiting)
	e.armed, e.absent = false, false
	e.forgetIfUnused()
}

// watchReads are the requests that set a watch of each kind.
var watchReads = [...]struct {
	op   wire.Op
	read func(*wire.Decoder) readResult
}{
	watchData:     {wire.OpGetData, readData},
	watchExists:   {wire.OpExists, readStat},
	watchChildren: {wire.OpGetChildren2, readNames},
}

// readNode reads the node behind the request that arms the entry's watch, or arms it by the reading.
func (e *watchEntry) readNode(a requester) (readResult, error) {
	f := make(future[readResult], 1)
	e.set.asking.Lock()
	a.t.mon.Send(e.prepareRead(e.armOnce(), func(r link.Reply) { f <- readAnswer(r, watchReads[e.key.kind].read) }))
	e.set.asking.Unlock()
	o := waitForOutcome(a.ctx, a.t, f)
	return o.v, o.err
}

// prepareRead prepares a read that sets the watch, or only reads. What the server was asked for is noted when it
// answers, also when the caller has given up by then.
func (e *watchEntry) prepareRead(arm bool, done func(link.Reply)) *link.Call {
	body := &wire.WatchRequest{Path: e.key.full, Watch: arm}
	return &link.Call{Op: watchReads[e.key.kind].op, Body: body, Done: func(r link.Reply) {
		if arm {
			e.noteOutcome(replyError(r))
		}
		done(r)
	}}
}

// setNoWatch tells that a read with this outcome has set no watch.
func (e *watchEntry) setNoWatch(err error) bool {
	return err != nil && !(e.key.kind == watchExists && errors.Is(err, ErrNoNode))
}

// noteOutcome notes the outcome of a request for the watch. Waiters that have joined meanwhile get an event that says that there is none,
// except after a lost connection: they get one once it has been replaced.
func (e *watchEntry) noteOutcome(err error) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if !e.setNoWatch(err) {
		e.absent = err != nil
		e.scheduleRemoval()
		return
	}
	e.armed = false
	defer func() {
		if there := e.set.entries[watchKey{watchExists, e.key.full}]; there != nil {
			there.scheduleRemoval()
		}
	}()
	switch {
	case errors.Is(err, ErrSuspended):
		e.forgetIfUnused()
	case errors.Is(err, ErrNoNode):
		e.endWithEvent(Event{Kind: NodeDeleted, Path: e.key.full})
	default:
		e.endWithEvent(Event{Path: e.key.full, Err: err})
	}
}
