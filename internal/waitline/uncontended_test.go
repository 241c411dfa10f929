package waitline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/primitives"
)

// deletedAt is a deletion by a transaction.
type deletedAt struct {
	primitives.Discarded
	zxid int64
	done chan struct{}
}

func (d deletedAt) Done() <-chan struct{} { return d.done }
func (d deletedAt) Zxid() int64           { return d.zxid }

func TestUncontendedHintNeedsTheNextNumberTransactionAndSession(t *testing.T) {
	at := func(seq int32) Position { return Position{Kind: Mutex, Seq: seq} }
	const session, deleted = 7, 100
	at100 := deletedAt{zxid: deleted, done: make(chan struct{})}
	var h uncontendedHint
	require.False(t, h.provesAlone(session, at(6), 1), "no release is known")
	h.recordRelease(session, at(5), at100)
	require.False(t, h.isLikely())
	require.False(t, h.provesAlone(session, at(6), deleted+1), "the deletion has no answer yet")
	close(at100.done)
	require.True(t, h.provesAlone(session, at(6), deleted+1))
	require.True(t, h.isLikely())
	require.False(t, h.provesAlone(session, at(7), deleted+1), "a contender joined in between")
	require.False(t, h.isLikely())
	require.False(t, h.provesAlone(session, at(6), deleted+2), "a transaction happened in between")
	require.False(t, h.provesAlone(session+1, at(6), deleted+1), "another session has released")
	unknown := at100
	unknown.zxid = 0
	h.recordRelease(session, at(5), unknown)
	require.False(t, h.provesAlone(session, at(6), 1), "the transaction of the deletion is not known")

	var readers uncontendedHint
	for _, kind := range []Kind{Read, Write} {
		readers.recordRelease(session, Position{Kind: kind, Seq: 5}, at100)
	}
	require.False(t, readers.provesAlone(session, at(6), deleted+1), "readers and writers are no proof")
}
