package locks

import "sync"

// lone remembers the line's last release, which may prove that the next contender is alone without a
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
type lone struct {
	mu      sync.Mutex
	session int64
	seq     int32
	deleted int64 // the transaction; 0 while nothing is known
	worked  bool
}

// left remembers a holder whose node is gone, by the transaction that deleted it. Readers are not
// alone, and a writer may have left a reader in its place.
func (o *lone) left(c *contender, zxid int64) {
	if c.place.kind.family() == WriteKind {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if zxid > o.deleted {
		o.session, o.seq, o.deleted = c.s.ID(), c.place.seq, zxid
	}
}

// likely tells whether to do without a list.
func (o *lone) likely() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.worked
}

// proven tells whether the contender is proven to be alone.
func (o *lone) proven(c *contender) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.worked = o.deleted != 0 && c.node.Zxid == o.deleted+1 && c.place.seq == o.seq+1 && c.s.ID() == o.session
	return o.worked
}
