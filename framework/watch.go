package framework

import (
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

// fires tells which kinds of watch an event ends.
var fires = map[EventKind][]watchKind{
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

// Stop ends the interest. The server's watch on a node that is there stays until that changes next, for whoever
// asks then; one on a missing node, which may never come, goes with the last who waits.
func (w *Watch) Stop() { w.entry.leave(w) }

// watches are a session's shared watches.
//
// A server keeps a watch until it fires, and one of a kind for each node and connection. So it is asked
// only where none is armed.
type watches struct {
	// asking keeps a read that relies on an armed watch behind the request that arms it.
	asking sync.Mutex

	send func(calls ...*link.Call) bool // to the server

	mu      sync.Mutex
	entries map[watchKey]*watchEntry
}

type watchKey struct {
	kind watchKind
	full string
}

type watchEntry struct {
	set *watches
	key watchKey

	// Guarded by set.mu.
	armed   bool
	absent  bool // the node was missing when the watch was armed
	waiting map[*Watch]bool
}

func (ws *watches) init() { ws.entries = map[watchKey]*watchEntry{} }

// join adds a waiter before the node is read, so that no event is missed.
func (ws *watches) join(key watchKey) *Watch {
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

func (e *watchEntry) leave(w *Watch) {
	if e.key.kind == watchExists { // who asks for a watch from now on asks behind its removal
		e.set.asking.Lock()
		defer e.set.asking.Unlock()
	}
	if e.without(w) {
		e.set.send(&link.Call{
			Op:   wire.OpRemoveWatches,
			Body: &wire.NumberRequest{Path: e.key.full, Number: wire.WatcherData},
			Done: func(link.Reply) {}, // a refusal says that it has fired
		})
	}
}

// without takes a waiter out, and tells whether the server's watch is to go too. Servers know one watch for both
// kinds that tell of data, so it stays while the other kind has an entry.
func (e *watchEntry) without(w *Watch) (remove bool) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	delete(e.waiting, w)
	remove = e.forlorn() && e.set.entries[watchKey{watchData, e.key.full}] == nil
	if remove {
		e.armed, e.absent = false, false
	}
	e.sweep()
	return remove
}

// forlorn tells that a server watches a missing node for nobody: for this entry, which is known or has had its event
// before the answer. Guarded by set.mu.
func (e *watchEntry) forlorn() bool {
	known := e.set.entries[e.key]
	return e.absent && len(e.waiting) == 0 && (known == e && e.armed || known == nil)
}

// tidy has the server's watch taken away if nobody waits for it when it is set. Guarded by set.mu.
func (e *watchEntry) tidy() {
	if e.key.kind == watchExists && e.forlorn() {
		go e.leave(nil)
	}
}

// sweep forgets an entry that nobody waits for and no server knows of.
func (e *watchEntry) sweep() {
	if len(e.waiting) == 0 && !e.armed && e.set.entries[e.key] == e {
		delete(e.set.entries, e.key)
	}
}

// arm marks the entry before the server is asked, and tells whether it must be asked. A forgotten entry
// has nobody who waits: an event of its watch would find no entry, or another one.
func (e *watchEntry) arm() bool {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if e.armed || e.set.entries[e.key] != e {
		return false
	}
	e.armed = true
	return true
}

// fire is the library's callback: it must not block.
func (ws *watches) fire(ev Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, kind := range fires[ev.Kind] {
		if e := ws.entries[watchKey{kind, ev.Path}]; e != nil {
			e.tell(ev)
		}
	}
}

// reconnected wakes every waiter to look again: what the library re-arms on a new connection may
// have missed a change in between.
func (ws *watches) reconnected() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for key, e := range ws.entries {
		e.tell(Event{Kind: Reconnected, Path: key.full})
	}
}

// tell ends the entry with an event.
func (e *watchEntry) tell(ev Event) {
	for w := range e.waiting {
		w.event <- ev // has room: a watch gets one event
	}
	clear(e.waiting)
	e.armed, e.absent = false, false
	e.sweep()
}
