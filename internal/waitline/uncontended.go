package waitline

import (
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// uncontendedHint remembers the line's last release. It may prove without a list of the line that
// the next contender is alone.
//
// Suppose that the first contender in line had number n and that transaction d deleted its node. If
// this session's next contender has number n+1 and was created by transaction d+1, no other
// transaction was applied between d and d+1. So the directory's counter was at n+1 when d was
// applied: no contender had joined behind n, and all contenders before n had left. The numbers n
// and n+1 alone prove nothing, because the counter begins again after the server has removed the
// empty directory.
//
// The proof needs no request. It fails if any client writes anything in between. So a contender
// requests a list with its create, unless the last proof has succeeded.
type uncontendedHint struct {
	mu        sync.Mutex
	session   framework.SessionID
	seq       int32
	deletion  primitives.Discarded // of the node; nil while there was no release
	succeeded bool                 // the last proof has succeeded
}

// recordRelease remembers a holder's number and the deletion of its node. It ignores readers and
// writers: other readers may hold beside a reader, and a writer may have left a reader with its
// number.
func (h *uncontendedHint) recordRelease(session framework.SessionID, p Position, deletion primitives.Discarded) {
	if p.Kind.Family() == Write {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.seq, h.deletion = session, p.Seq, deletion
}

// isLikely reports whether the last proof has succeeded.
func (h *uncontendedHint) isLikely() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.succeeded
}

// provesAlone reports whether a contender is proven to be alone in line. created is the transaction
// that created its node.
func (h *uncontendedHint) provesAlone(session framework.SessionID, p Position, created int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.succeeded = false
	if h.deletion != nil && session == h.session && p.Seq == h.seq+1 {
		select {
		case <-h.deletion.Done():
			deleted := h.deletion.Zxid() // 0 if it is not known
			h.succeeded = deleted != 0 && created == deleted+1
		default:
		}
	}
	return h.succeeded
}
