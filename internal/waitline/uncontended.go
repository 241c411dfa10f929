package waitline

import "sync"

// uncontendedHint remembers the line's last release. It may prove that the next contender is alone, without a list of the line.
//
// A contender was first in line with number n, and transaction d deleted its node. If this session's next contender has number n+1 and
// was created by transaction d+1, no other transaction happened on the ensemble in between. So the directory's counter was at n+1 when d
// was applied: no contender had joined behind n, and all contenders before n had left. One of the numbers alone is no proof: the counter
// begins again when the server removes an empty directory.
//
// The proof needs no request. It fails whenever another client writes anything, so a contender leaves out the list that travels behind its
// create only after the proof has succeeded the last time.
type uncontendedHint struct {
	mu      sync.Mutex
	session int64
	seq     int32
	deleted int64 // the transaction; 0 while it is not known
	worked  bool
}

// recordRelease remembers a holder's number and the transaction that deleted its node. Readers are not alone, and a writer may have left
// a reader with its number, so their numbers are no proof.
func (h *uncontendedHint) recordRelease(session int64, p Position, zxid int64) {
	if p.Kind.Family() == Write {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if zxid > h.deleted {
		h.session, h.seq, h.deleted = session, p.Seq, zxid
	}
}

// isLikely reports whether the proof has succeeded the last time.
func (h *uncontendedHint) isLikely() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.worked
}

// provesAlone reports whether a contender that was created by a transaction is proven to be alone.
func (h *uncontendedHint) provesAlone(session int64, p Position, created int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worked = h.deleted != 0 && created == h.deleted+1 && p.Seq == h.seq+1 && session == h.session
	return h.worked
}
