package locks

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// localWaiters is what one session's contenders in one line share: who stands behind whom, and lists.
//
// Where two of them have consecutive numbers, nobody can stand between. So the one behind needs neither
// list nor watch: when the one before leaves, it is told in memory. It is told only after the deletion of
// the other's node is in the connection's queue, so that what the new holder writes comes after
// it, and what the old one wrote under guard comes before or is refused.
type localWaiters struct {
	s   *framework.Session
	dir string

	mu      sync.Mutex
	joining int
	members map[int32]*contender // by number; those that have not left
	asked   *listing             // wanted, not yet begun
	listing bool
}

// localWaitersKey finds the local waiters of a session.
type localWaitersKey struct {
	dir    string
	family Kind
}

// localWaitersOf returns the local waiters of the line on this session; leave it with close.
func localWaitersOf(s *framework.Session, l *Line) *localWaiters {
	return s.Primitives().Share(localWaitersKey{l.path, l.kind.familyName()}, func() any {
		return &localWaiters{s: s, dir: l.path, members: map[int32]*contender{}}
	}).(*localWaiters)
}

func (r *localWaiters) leave(l *Line) {
	r.s.Primitives().Unshare(localWaitersKey{l.path, l.kind.familyName()})
}

// announce announces a contender, and reports whether it is the only one here.
func (r *localWaiters) announce() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joining++
	return r.joining == 1 && len(r.members) == 0
}

// addContender puts a contender into its place, or takes its announcement back when it has none.
func (r *localWaiters) addContender(c *contender) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joining--
	if c.node.Path == "" {
		return
	}
	r.members[c.place.seq] = c
	if p := r.members[c.place.seq-1]; p != nil {
		for p.next != nil && p.next.place.seq == p.place.seq { // several may stand in a writer's place
			p = p.next
		}
		p.setNext(c)
	}
	if n := r.members[c.place.seq+1]; n != nil {
		c.setNext(n)
		n.wake()
	}
}

// addDowngraded puts a reader into the number of the writer that it goes on from, and reports whether the
// writer is still there. The reader passes in this row's eyes when the writer has left.
func (r *localWaiters) addDowngraded(w, c *contender) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.left {
		return false
	}
	c.next = w.next
	if c.next != nil {
		c.next.prev = c
	}
	c.prev, w.next = w, c
	r.members[c.place.seq] = c
	return true
}

// removeContender takes a contender out: one that was granted only after its deletion is in the connection's
// queue. It reports whether the contender had not left before.
func (r *localWaiters) removeContender(c *contender) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.left {
		return false
	}
	c.left = true
	r.removeFromNumber(c)
	p, n := c.prev, c.next
	c.prev, c.next = nil, nil
	if p != nil {
		p.next = nil
	}
	if n == nil {
		return true
	}
	n.prev = nil
	switch {
	case c.cleared:
		n.markUnblocked()
	case p != nil: // nobody can stand between those two either
		p.setNext(n)
	}
	n.wake()
	return true
}

// removeFromNumber takes a contender off its number, which the writer has again that stands there too.
func (r *localWaiters) removeFromNumber(c *contender) {
	if r.members[c.place.seq] != c {
		return
	}
	delete(r.members, c.place.seq)
	if p := c.prev; p != nil && p.place.seq == c.place.seq {
		r.members[p.place.seq] = p
	}
}

// markPassed lets a contender pass; clear says that nobody at all is before it.
func (r *localWaiters) markPassed(c *contender, clear bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.admitted = true
	c.cleared = c.cleared || clear
	c.admitReadersBehind()
}

// waitState is what a contender has to do.
type waitState int

const (
	passed  waitState = iota // it is granted
	behind                   // one of this row is right before it
	leading                  // it has to find out by itself who is before it
)

func (r *localWaiters) waitStateOf(c *contender) waitState {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case c.admitted:
		return passed
	case c.prev != nil:
		return behind
	}
	return leading
}

// setNext puts n right behind c. Guarded by row.mu, as all that follows.
func (c *contender) setNext(n *contender) {
	c.next, n.prev = n, c
	if c.admitted {
		c.admitReadersBehind()
	}
}

// markUnblocked tells a contender that nobody is before it any more.
func (c *contender) markUnblocked() {
	c.cleared, c.admitted = true, true
	c.admitReadersBehind()
}

// admitReadersBehind lets readers pass that stand behind a reader which has passed.
func (c *contender) admitReadersBehind() {
	for n := c.next; n != nil && c.place.kind.isShared() && n.place.kind.isShared() && !n.admitted; n = n.next {
		n.admitted = true
		n.wake()
		c = n
	}
}

// wake makes a waiting contender look at its standing again.
func (c *contender) wake() {
	select {
	case c.stirred <- struct{}{}:
	default:
	}
}

// listing is one list that any number of contenders wait for.
type listing struct {
	done  chan struct{}
	names []string
	err   error
}

// listOnce lists the line once for all who ask while a former list is under way. It begins after it was
// asked for.
func (r *localWaiters) listOnce(ctx context.Context) ([]string, error) {
	l := r.askForList()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, framework.Ended(ctx)
	}
}

func (r *localWaiters) askForList() *listing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = &listing{done: make(chan struct{})}
	}
	if !r.listing {
		r.listing = true
		go r.answerLists()
	}
	return r.asked
}

// answerLists lists until nobody asks.
func (r *localWaiters) answerLists() {
	for l := r.takeListings(); l != nil; l = r.takeListings() {
		l.names, _, l.err = r.s.Children(r.s.Context(), r.dir)
		close(l.done)
	}
}

func (r *localWaiters) takeListings() *listing {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.asked
	r.asked, r.listing = nil, l != nil
	return l
}

// lineView is what a contender sees of the line.
type lineView struct {
	mine      bool     // the contender itself is there
	ahead     int      // contenders before it
	blockers  int      // those of them that it must wait for
	near, far position // the last of these, and the one before that
}

// viewFrom looks at the line from one place, without sorting it: lists may be long.
func viewFrom(names []string, co kindFilter, from position) (v lineView, err error) {
	err = forEachContender(names, co, func(p position) {
		if p.name == from.name {
			v.mine = true
		}
		if p.isBefore(from) {
			v.ahead++
		}
		if p.mustWaitForThis(from) {
			v.addBlocker(p)
		}
	})
	if err != nil { // what was seen before is not all
		return lineView{}, err
	}
	return v, nil
}

func (v *lineView) addBlocker(p position) {
	v.blockers++
	switch {
	case v.blockers == 1 || v.near.isBefore(p):
		v.near, v.far = p, v.near
	case v.blockers == 2 || v.far.isBefore(p):
		v.far = p
	}
}

// uncontendedHint remembers the line's last release, which may prove that the next contender is alone without a
// look at the line.
//
// A contender was first in line, with number n, and transaction d deleted its node. If this session's next
// contender has number n+1 and was created by transaction d+1, nothing at all has happened on
// the ensemble in between, so the directory's counter stood at n+1 when d was applied: nobody
// had joined behind n, and whoever was before n had left. Neither number is proof enough alone: the
// counter begins again when the server reaps an empty directory.
//
// The proof costs nothing and fails whenever somebody else writes anything, so the list that travels
// behind a create is left out only after it has succeeded the last time.
type uncontendedHint struct {
	mu      sync.Mutex
	session int64
	seq     int32
	deleted int64 // the transaction; 0 while nothing is known
	worked  bool
}

// recordRelease remembers a holder whose node is gone, by the transaction that deleted it. Readers are not
// alone, and a writer may have left a reader in its place.
func (o *uncontendedHint) recordRelease(c *contender, zxid int64) {
	if c.place.kind.familyName() == WriteKind {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if zxid > o.deleted {
		o.session, o.seq, o.deleted = c.s.ID(), c.place.seq, zxid
	}
}

// isLikely reports whether to do without a list.
func (o *uncontendedHint) isLikely() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.worked
}

// isProven reports whether the contender is proven to be alone.
func (o *uncontendedHint) isProven(c *contender) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.worked = o.deleted != 0 && c.node.Zxid == o.deleted+1 && c.place.seq == o.seq+1 && c.s.ID() == o.session
	return o.worked
}
