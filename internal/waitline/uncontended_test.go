package waitline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUncontendedHintNeedsTheNextNumberTransactionAndSession(t *testing.T) {
	at := func(seq int32) Position { return Position{Kind: Mutex, Seq: seq} }
	const session, deleted = 7, 100
	var h uncontendedHint
	require.False(t, h.provesAlone(session, at(6), 1), "no release is known")
	h.recordRelease(session, at(5), deleted)
	require.False(t, h.isLikely())
	require.True(t, h.provesAlone(session, at(6), deleted+1))
	require.True(t, h.isLikely())
	require.False(t, h.provesAlone(session, at(7), deleted+1), "a contender joined in between")
	require.False(t, h.isLikely())
	require.False(t, h.provesAlone(session, at(6), deleted+2), "a transaction happened in between")
	require.False(t, h.provesAlone(session+1, at(6), deleted+1), "another session has released")
	h.recordRelease(session, at(4), deleted-1)
	require.True(t, h.provesAlone(session, at(6), deleted+1), "an older release does not replace a newer one")

	var readers uncontendedHint
	for _, kind := range []Kind{Read, Write} {
		readers.recordRelease(session, Position{Kind: kind, Seq: 5}, deleted)
	}
	require.False(t, readers.provesAlone(session, at(6), deleted+1), "readers and writers are no proof")
}
