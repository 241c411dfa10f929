package waitline

import (
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// localWaiters are one session's contenders in one line.
//
// No other contender can stand between two of them that have consecutive numbers. So the second needs no list and no watch: the
// first wakes it in memory when it leaves. It does so only after the deletion of its node is in the connection's queue. So what the
// new holder writes reaches the servers later, and what the old holder wrote under guard reached them earlier or is refused.
type localWaiters struct {
	s     *framework.Session
	key   any // a localWaitersKey
	lists sharedList

	mu      sync.Mutex
	joining int
	bySeq   map[int32]*localWaiter // those that have not left
}

// localWaitersKey finds the local waiters of a session.
type localWaitersKey struct {
	dir    string
	family Kind
}

// localWaitersOf returns the local waiters of a line in a directory on this session. The key is the line's. Each caller calls releaseShared once.
func localWaitersOf(s *framework.Session, dir string, key any) *localWaiters {
	return s.Primitives().Share(key, func() any {
		return &localWaiters{s: s, key: key, lists: sharedList{s: s, dir: dir}, bySeq: map[int32]*localWaiter{}}
	}).(*localWaiters)
}

func (ws *localWaiters) releaseShared() { ws.s.Primitives().Unshare(ws.key) }

// localWaiter is one contender of a session.
type localWaiter struct {
	position Position
	wakeups  chan struct{} // has room for one

	// Guarded by localWaiters.mu.
	prev, next *localWaiter // those with consecutive numbers
	granted    bool         // no contender before it blocks it
	first      bool         // it is the first in line
	left       bool
}

// announceJoin counts a contender that is about to join, and reports whether it is the only one of this session.
func (ws *localWaiters) announceJoin() (only bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining++
	return ws.joining == 1 && len(ws.bySeq) == 0
}

// joinFailed undoes announceJoin.
func (ws *localWaiters) joinFailed() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining--
}

// addWaiter adds an announced contender that has joined, and links it to its neighbours.
func (ws *localWaiters) addWaiter(w *localWaiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining--
	ws.bySeq[w.position.Seq] = w
	if p := ws.bySeq[w.position.Seq-1]; p != nil {
		for p.next != nil && p.next.position.Seq == p.position.Seq { // a writer and its readers may have one number
			p = p.next
		}
		p.setNext(w)
	}
	if n := ws.bySeq[w.position.Seq+1]; n != nil {
		w.setNext(n)
		n.wakeUp()
	}
}

// addDowngraded puts a reader behind the writer whose number it takes. It returns false if the writer has left already. To the local waiters, the
// reader is granted when the writer has left.
func (ws *localWaiters) addDowngraded(writer, reader *localWaiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if writer.left {
		return false
	}
	reader.next = writer.next
	if reader.next != nil {
		reader.next.prev = reader
	}
	reader.prev, writer.next = writer, reader
	ws.bySeq[reader.position.Seq] = reader
	return true
}

// removeWaiter removes a contender and wakes the next one. It removes a holder only after the deletion of the holder's node is in the connection's
// queue. It returns false if the contender had left before.
func (ws *localWaiters) removeWaiter(w *localWaiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.left {
		return false
	}
	w.left = true
	p, n := w.prev, w.next
	if ws.bySeq[w.position.Seq] == w {
		delete(ws.bySeq, w.position.Seq)
		if p != nil && p.position.Seq == w.position.Seq { // the writer whose number this reader has taken
			ws.bySeq[p.position.Seq] = p
		}
	}
	w.prev, w.next = nil, nil
	if p != nil {
		p.next = nil
	}
	if n == nil {
		return true
	}
	n.prev = nil
	switch {
	case w.first:
		n.first, n.granted = true, true
		n.grantReadersBehind()
	case p != nil: // no contender can stand between those two either
		p.setNext(n)
	}
	n.wakeUp()
	return true
}

// markGranted grants the contender: no contender blocks it. first says that it is also the first in line.
func (ws *localWaiters) markGranted(w *localWaiter, first bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.granted = true
	w.first = w.first || first
	w.grantReadersBehind()
}

// waitState is what a contender has to do.
type waitState int

const (
	granted     waitState = iota // nothing more
	behindLocal                  // wait for a wake-up of the local waiter right before it
	mustWatch                    // find and watch its predecessors
)

func (ws *localWaiters) stateOf(w *localWaiter) waitState {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case w.granted:
		return granted
	case w.prev != nil:
		return behindLocal
	}
	return mustWatch
}

// nameBefore returns the name of the local waiter right before this one, or "".
func (ws *localWaiters) nameBefore(w *localWaiter) string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.prev == nil {
		return ""
	}
	return w.prev.position.Name
}

// setNext puts n right behind w; localWaiters.mu is held, as in the functions below.
func (w *localWaiter) setNext(n *localWaiter) {
	w.next, n.prev = n, w
	if w.granted {
		w.grantReadersBehind()
	}
}

// grantReadersBehind grants to the readers right behind a granted reader.
func (w *localWaiter) grantReadersBehind() {
	for n := w.next; n != nil && w.position.Kind.IsShared() && n.position.Kind.IsShared() && !n.granted; n = n.next {
		n.granted = true
		n.wakeUp()
		w = n
	}
}

// wakeUp makes a waiting contender check its state again.
func (w *localWaiter) wakeUp() {
	select {
	case w.wakeups <- struct{}{}:
	default:
	}
}
