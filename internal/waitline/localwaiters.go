package waitline

import (
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// localContenders are one session's contenders in one line.
//
// As long as the directory exists, no other contender can stand between two of them that have
// consecutive numbers. So the second needs no list and no watch: when the first leaves, it wakes
// the second in memory. It does so only after the deletion of its node is in the connection's
// queue. So the servers get the writes of the new holder on this connection after this deletion. If
// transactions check the node of the first (see Grant.SetGuarded), it waits until the node is gone:
// the guarded writes of the old holder, on any connection, come before that, or the servers refuse
// them.
//
// The servers remove the directory when it is empty, as it may be behind a contender whose deletion
// this session does not know of yet. So contenders that join after that deletion was sent get no
// link to it: see beginLeave.
//
// An operator may delete the directory with its nodes. In the next directory the numbers begin
// again, so that contenders of both directories could seem to be neighbours. addContender breaks
// the links of the old directory's contenders when their numbers show that. A contender that learns
// of the deletion of its node does not grant the next one: see Contender.Unlink. A contender that
// leaves before that wakes the next one as always.
type localContenders struct {
	s     *framework.Session
	key   any // a localContendersKey
	lists sharedList

	mu      sync.Mutex
	joining int // contenders that are creating their nodes
	// contenders that have joined and not left, by number; of a writer and the readers with its
	// number, one
	bySeq  map[int32]*localContender
	newest struct { // of all contenders that have joined
		zxid     int64
		position Position
	}
}

// localContendersKey is the key of a line's local contenders among the shared values of a session.
type localContendersKey struct {
	dir    string
	family Kind
}

// localContendersOf returns the local contenders of a line in a directory on this session. The key
// is the line's. Each caller calls releaseShared once.
func localContendersOf(s *framework.Session, dir string, key any) *localContenders {
	return primitives.Of(s).Share(key, func() any {
		return &localContenders{s: s, key: key, lists: sharedList{s: s, dir: dir}, bySeq: map[int32]*localContender{}}
	}).(*localContenders)
}

func (ws *localContenders) releaseShared() { primitives.Of(ws.s).Unshare(ws.key) }

// localContender is one contender of a session.
type localContender struct {
	position Position
	// the transaction that created the node; of a reader with a writer's number, that of the writer
	zxid    int64
	wakeups chan struct{} // has room for one

	// Guarded by localContenders.mu.
	prev, next *localContender // neighbours: their numbers are consecutive, or equal after a downgrade
	granted    bool            // no contender blocks it
	first      bool            // it is the first in line
	left       bool            // removeContender has removed it
	leaving    bool            // the deletion of its node may have been sent: it gets no next neighbour
	// its node takes a writer's number, and may not have been created: it gets no next neighbour
	creating bool
	// its links are broken: its node was deleted, or may have been, with its directory or alone
	unlinked bool
}

// announceJoin counts a contender that is about to join, and reports whether it is the only one of
// this session.
func (ws *localContenders) announceJoin() (only bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining++
	return ws.joining == 1 && len(ws.bySeq) == 0
}

// joinFailed undoes announceJoin.
func (ws *localContenders) joinFailed() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining--
}

// addContender adds an announced contender that has joined, and links it to its neighbours.
//
// In one directory the servers create the nodes in the order of their numbers. If another contender
// was created earlier with a number that is not lower, an operator has deleted the directory
// meanwhile. Then the earlier contenders are of the old directory, and get no links to those of the
// new one.
func (ws *localContenders) addContender(w *localContender) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.joining--
	fromAnotherTransaction := ws.newest.zxid != 0 && w.zxid != ws.newest.zxid
	switch isNewer := w.zxid > ws.newest.zxid; {
	case fromAnotherTransaction && isNewer && !ws.newest.position.IsBefore(w.position):
		ws.unlinkAll()
	case fromAnotherTransaction && !isNewer &&
		(!w.position.IsBefore(ws.newest.position) || ws.bySeq[w.position.Seq] != nil):
		w.unlinked = true
		return
	}
	if w.zxid > ws.newest.zxid {
		ws.newest.zxid, ws.newest.position = w.zxid, w.position
	}
	ws.bySeq[w.position.Seq] = w
	if p := ws.bySeq[w.position.Seq-1]; p != nil {
		for p.next != nil && p.next.position.Seq == p.position.Seq { // a writer and its readers may have one number
			p = p.next
		}
		if !p.leaving && !p.creating {
			p.setNext(w)
		}
	}
	if n := ws.bySeq[w.position.Seq+1]; n != nil {
		w.setNext(n)
		n.wakeUp()
	}
}

// addDowngraded puts a reader right behind the writer whose number it takes. It returns false if
// the writer has left already or was unlinked. The reader is marked as granted when the writer
// leaves. Until downgraded is called, no contender that joins gets a link to the reader: the writer
// may leave before the reader's node was created, and the servers remove the directory then.
func (ws *localContenders) addDowngraded(writer, reader *localContender) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if writer.left || writer.leaving || writer.unlinked {
		return false
	}
	reader.next = writer.next
	if reader.next != nil {
		reader.next.prev = reader
	}
	reader.prev, writer.next = writer, reader
	reader.zxid, reader.creating = writer.zxid, true
	ws.bySeq[reader.position.Seq] = reader
	return true
}

// downgraded says that the node of a reader exists that addDowngraded has added.
func (ws *localContenders) downgraded(reader *localContender) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	reader.creating = false
}

// beginLeave says that the deletion of a contender's node is about to be sent. The nodes of
// contenders that join later may be created behind it, where other sessions' contenders may come
// between them, also in a new directory whose numbers begin again. So they list the line.
func (ws *localContenders) beginLeave(w *localContender) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.leaving = true
}

// removeContender removes a contender and wakes the next one. Call it for a holder only after the
// deletion of the holder's node is in the connection's queue, or after the node is gone if it was
// guarded. It returns false if the contender was removed before.
func (ws *localContenders) removeContender(w *localContender) bool {
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
	case p != nil: // w was between p and n, so no other contender can be
		p.setNext(n)
	}
	n.wakeUp()
	return true
}

// unlinkContender breaks a contender's links to its neighbours, and makes the next one list the
// line. The caller still has to remove the contender.
func (ws *localContenders) unlinkContender(w *localContender) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.unlink(w)
}

// unlinkAll unlinks all contenders. Those that wait list the line, and find that their nodes are
// gone. The caller holds mu.
func (ws *localContenders) unlinkAll() {
	for _, w := range ws.bySeq {
		for n := w.next; n != nil && n.position.Seq == w.position.Seq; n = w.next {
			ws.unlink(n)
			n.wakeUp()
		}
		for p := w.prev; p != nil && p.position.Seq == w.position.Seq; p = w.prev {
			ws.unlink(p)
			p.wakeUp()
		}
		ws.unlink(w)
		w.wakeUp()
	}
}

// unlink is unlinkContender. The caller holds mu.
func (ws *localContenders) unlink(w *localContender) {
	w.unlinked = true
	if ws.bySeq[w.position.Seq] == w {
		delete(ws.bySeq, w.position.Seq)
	}
	if w.prev != nil {
		w.prev.next = nil
	}
	if w.next != nil {
		w.next.prev = nil
		w.next.wakeUp()
	}
	w.prev, w.next = nil, nil
}

// markGranted grants the contender: no contender blocks it. first says that it is also the first in
// line.
func (ws *localContenders) markGranted(w *localContender, first bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.granted = true
	w.first = w.first || first
	w.grantReadersBehind()
}

// waitState says what a contender waits for.
type waitState int

const (
	granted     waitState = iota // it waits no longer
	behindLocal                  // the local contender right before it wakes it
	mustWatch                    // it has to list the line and watch its predecessors
)

func (ws *localContenders) stateOf(w *localContender) waitState {
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

// nameBefore returns the name of the local contender right before this one, or "".
func (ws *localContenders) nameBefore(w *localContender) string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.prev == nil {
		return ""
	}
	return w.prev.position.Name
}

// setNext puts n right behind w. The caller of this function and of those below holds
// localContenders.mu.
func (w *localContender) setNext(n *localContender) {
	w.next, n.prev = n, w
	if w.granted {
		w.grantReadersBehind()
	}
}

// grantReadersBehind grants the readers right behind w, if w is a granted reader.
func (w *localContender) grantReadersBehind() {
	for n := w.next; n != nil && w.position.Kind.IsShared() && n.position.Kind.IsShared() && !n.granted; n = n.next {
		n.granted = true
		n.wakeUp()
		w = n
	}
}

// wakeUp makes a waiting contender check its state again.
func (w *localContender) wakeUp() {
	select {
	case w.wakeups <- struct{}{}:
	default:
	}
}
