package waitline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// joinAs adds a contender whose node a transaction has created with a number.
func joinAs(ws *localContenders, kind Kind, zxid int64, seq int32) *localContender {
	w := &localContender{position: Position{Kind: kind, Seq: seq}, zxid: zxid, wakeups: make(chan struct{}, 1)}
	ws.announceJoin()
	ws.addContender(w)
	return w
}

func TestReaderIsNotLinkedToWriterThatHasGone(t *testing.T) {
	for name, leave := range map[string]func(*localContenders, *localContender){
		"left":     func(ws *localContenders, w *localContender) { ws.removeContender(w) },
		"unlinked": func(ws *localContenders, w *localContender) { ws.unlinkContender(w) },
	} {
		t.Run(name, func(t *testing.T) {
			ws := &localContenders{bySeq: map[int32]*localContender{}}
			writer := &localContender{position: Position{Kind: Write, Seq: 5}}
			ws.announceJoin()
			ws.addContender(writer)
			leave(ws, writer)
			require.False(t, ws.addDowngraded(writer, &localContender{position: Position{Kind: Read, Seq: 5}}))
			require.Empty(t, ws.bySeq)
		})
	}
}

// TestAContenderThatLeavesGetsNoNeighbour: what joins behind it may stand in another directory.
func TestAContenderThatLeavesGetsNoNeighbour(t *testing.T) {
	for _, kind := range []Kind{Mutex, Read} {
		ws := &localContenders{bySeq: map[int32]*localContender{}}
		join := func(zxid int64, seq int32) *localContender { return joinAs(ws, kind, zxid, seq) }
		holder := join(100, 0)
		ws.markGranted(holder, true)
		neighbour := join(101, 1)
		ws.beginLeave(neighbour)
		late := join(103, 2)
		require.Equal(t, mustWatch, ws.stateOf(late))
		ws.beginLeave(holder)
		ws.removeContender(holder)
		require.Equal(t, granted, ws.stateOf(neighbour), "it joined before the holder began to leave")
		ws.removeContender(neighbour)
		require.Equal(t, mustWatch, ws.stateOf(late), "%v", kind)
	}
	ws := &localContenders{bySeq: map[int32]*localContender{}}
	writer := joinAs(ws, Write, 100, 0)
	ws.beginLeave(writer)
	require.False(t, ws.addDowngraded(writer, &localContender{position: Position{Kind: Read}}))
}

// TestAReaderWithoutANodeGetsNoNeighbour: until its node exists, the servers may remove the
// directory behind the writer whose number it takes.
func TestAReaderWithoutANodeGetsNoNeighbour(t *testing.T) {
	for hasNode, state := range map[bool]waitState{false: mustWatch, true: granted} {
		ws := &localContenders{bySeq: map[int32]*localContender{}}
		writer := joinAs(ws, Write, 100, 0)
		ws.markGranted(writer, true)
		reader := &localContender{position: Position{Kind: Read}, wakeups: make(chan struct{}, 1)}
		require.True(t, ws.addDowngraded(writer, reader))
		if hasNode {
			ws.downgraded(reader)
		}
		ws.beginLeave(writer)
		ws.removeContender(writer)
		require.Equal(t, granted, ws.stateOf(reader))
		require.Equal(t, state, ws.stateOf(joinAs(ws, Read, 103, 1)), "node: %v", hasNode)
	}
}

// TestContendersOfADeletedDirectoryAreUnlinked checks the numbers and zxids by which addContender
// recognizes them.
func TestContendersOfADeletedDirectoryAreUnlinked(t *testing.T) {
	ws := &localContenders{bySeq: map[int32]*localContender{}}
	join := func(zxid int64, seq int32) *localContender { return joinAs(ws, Write, zxid, seq) }
	second, first := join(101, 6), join(100, 5) // the answers' goroutines may come in any order
	require.Equal(t, first, second.prev)
	reader := &localContender{position: Position{Kind: Read, Seq: 6}, wakeups: make(chan struct{}, 1)}
	require.True(t, ws.addDowngraded(second, reader))
	next := join(200, 4)
	for _, old := range []*localContender{first, second, reader} {
		require.True(t, old.unlinked)
		require.Nil(t, old.prev)
		require.Nil(t, old.next)
		require.Len(t, old.wakeups, 1)
	}
	late := join(102, 7) // of the old directory, too
	require.True(t, late.unlinked)
	require.Equal(t, map[int32]*localContender{4: next}, ws.bySeq)
	last := join(201, 5)
	require.Equal(t, next, last.prev)
	for _, seq := range []int32{5, 4} { // the newest one's number, and that of another
		require.True(t, join(103, seq).unlinked)
	}
	require.Equal(t, map[int32]*localContender{4: next, 5: last}, ws.bySeq)
	ws.removeContender(first)
	ws.removeContender(second)
	ws.removeContender(reader)
	ws.removeContender(late)
	require.Equal(t, next, last.prev)
	require.Equal(t, last, next.next)
}
