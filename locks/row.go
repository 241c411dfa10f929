package locks

import (
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// row is what one session's contenders in one line share: who stands behind whom, and lists.
//
// Where two of them have consecutive numbers, nobody can stand between. So the one behind needs neither
// list nor watch: when the one before leaves, it is told in memory. It is told only after the deletion of
// the other's node is in the connection's queue, so that what the new holder writes comes after
// it, and what the old one wrote under guard comes before or is refused.
type row struct {
	s   *framework.Session
	dir string

	mu      sync.Mutex
	joining int
	members map[int32]*contender // by number; those that have not left
	asked   *listing             // wanted, not yet begun
	listing bool
}

// rowKey finds the row of a session.
type rowKey struct {
	dir    string
	family Kind
}

// rowOf returns the row of the line on this session; leave it with close.
func rowOf(s *framework.Session, l *Line) *row {
	return s.Share(rowKey{l.path, l.kind.family()}, func() any {
		return &row{s: s, dir: l.path, members: map[int32]*contender{}}
	}).(*row)
}

func (r *row) close(l *Line) { r.s.Unshare(rowKey{l.path, l.kind.family()}) }

// begin announces a contender, and tells whether it is the only one here.
func (r *row) begin() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joining++
	return r.joining == 1 && len(r.members) == 0
}

// enter puts a contender into its place, or takes its announcement back when it has none.
func (r *row) enter(c *contender) {
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
		p.link(c)
	}
	if n := r.members[c.place.seq+1]; n != nil {
		c.link(n)
		n.stir()
	}
}

// enterBehind puts a reader into the number of the writer that it goes on from, and tells whether the
// writer is still there. The reader passes in this row's eyes when the writer has left.
func (r *row) enterBehind(w, c *contender) bool {
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

// leave takes a contender out: one that was granted only after its deletion is in the connection's
// queue. It tells whether the contender had not left before.
func (r *row) leave(c *contender) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.left {
		return false
	}
	c.left = true
	r.forget(c)
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
		n.clear()
	case p != nil: // nobody can stand between those two either
		p.link(n)
	}
	n.stir()
	return true
}

// forget takes a contender off its number, which the writer has again that stands there too.
func (r *row) forget(c *contender) {
	if r.members[c.place.seq] != c {
		return
	}
	delete(r.members, c.place.seq)
	if p := c.prev; p != nil && p.place.seq == c.place.seq {
		r.members[p.place.seq] = p
	}
}

// admit lets a contender pass; clear says that nobody at all is before it.
func (r *row) admit(c *contender, clear bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.admitted = true
	c.cleared = c.cleared || clear
	c.spread()
}

// standing is what a contender has to do.
type standing int

const (
	passed  standing = iota // it is granted
	behind                  // one of this row is right before it
	leading                 // it has to find out by itself who is before it
)

func (r *row) standing(c *contender) standing {
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

// link puts n right behind c. Guarded by row.mu, as all that follows.
func (c *contender) link(n *contender) {
	c.next, n.prev = n, c
	if c.admitted {
		c.spread()
	}
}

// clear tells a contender that nobody is before it any more.
func (c *contender) clear() {
	c.cleared, c.admitted = true, true
	c.spread()
}

// spread lets readers pass that stand behind a reader which has passed.
func (c *contender) spread() {
	for n := c.next; n != nil && c.place.kind.shared() && n.place.kind.shared() && !n.admitted; n = n.next {
		n.admitted = true
		n.stir()
		c = n
	}
}

// stir makes a waiting contender look at its standing again.
func (c *contender) stir() {
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

// list lists the line once for all who ask while a former list is under way. It begins after it was
// asked for.
func (r *row) list(ctx context.Context) ([]string, error) {
	l := r.ask()
	select {
	case <-l.done:
		return l.names, l.err
	case <-ctx.Done():
		return nil, framework.Ended(ctx)
	}
}

func (r *row) ask() *listing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = &listing{done: make(chan struct{})}
	}
	if !r.listing {
		r.listing = true
		go r.answer()
	}
	return r.asked
}

// answer lists until nobody asks.
func (r *row) answer() {
	for l := r.take(); l != nil; l = r.take() {
		l.names, _, l.err = r.s.Children(r.s.Context(), r.dir)
		close(l.done)
	}
}

func (r *row) take() *listing {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.asked
	r.asked, r.listing = nil, l != nil
	return l
}
