package waitline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReaderIsNotLinkedToWriterThatHasGone(t *testing.T) {
	for name, leave := range map[string]func(*localWaiters, *localWaiter){
		"left":     func(ws *localWaiters, w *localWaiter) { ws.removeWaiter(w) },
		"unlinked": func(ws *localWaiters, w *localWaiter) { ws.unlinkWaiter(w) },
	} {
		t.Run(name, func(t *testing.T) {
			ws := &localWaiters{bySeq: map[int32]*localWaiter{}}
			writer := &localWaiter{position: Position{Kind: Write, Seq: 5}}
			ws.announceJoin()
			ws.addWaiter(writer)
			leave(ws, writer)
			require.False(t, ws.addDowngraded(writer, &localWaiter{position: Position{Kind: Read, Seq: 5}}))
			require.Empty(t, ws.bySeq)
		})
	}
}

// TestContendersOfADeletedDirectoryAreUnlinked checks the numbers and zxids by which addWaiter recognizes them.
func TestContendersOfADeletedDirectoryAreUnlinked(t *testing.T) {
	ws := &localWaiters{bySeq: map[int32]*localWaiter{}}
	join := func(zxid int64, seq int32) *localWaiter {
		w := &localWaiter{position: Position{Kind: Write, Seq: seq}, zxid: zxid, wakeups: make(chan struct{}, 1)}
		ws.announceJoin()
		ws.addWaiter(w)
		return w
	}
	second, first := join(101, 6), join(100, 5) // the answers' goroutines may come in any order
	require.Equal(t, first, second.prev)
	reader := &localWaiter{position: Position{Kind: Read, Seq: 6}, wakeups: make(chan struct{}, 1)}
	require.True(t, ws.addDowngraded(second, reader))
	next := join(200, 4)
	for _, old := range []*localWaiter{first, second, reader} {
		require.True(t, old.unlinked)
		require.Nil(t, old.prev)
		require.Nil(t, old.next)
		require.Len(t, old.wakeups, 1)
	}
	late := join(102, 7) // of the old directory, too
	require.True(t, late.unlinked)
	require.Equal(t, map[int32]*localWaiter{4: next}, ws.bySeq)
	last := join(201, 5)
	require.Equal(t, next, last.prev)
	for _, seq := range []int32{5, 4} { // the newest one's number, and that of another
		require.True(t, join(103, seq).unlinked)
	}
	require.Equal(t, map[int32]*localWaiter{4: next, 5: last}, ws.bySeq)
	ws.removeWaiter(first)
	ws.removeWaiter(second)
	ws.removeWaiter(reader)
	ws.removeWaiter(late)
	require.Equal(t, next, last.prev)
	require.Equal(t, last, next.next)
}
