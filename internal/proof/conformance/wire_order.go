package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireOrder = []behaviour{
	{"replies come in the order of requests", repliesInOrder},
	{"the writer's event comes before its reply", eventBeforeOwnReply},
	{"a reader's event comes before a reply that shows the change", eventBeforeChange},
	{"a read after a write shows the write", readSeesOwnWrite},
	{"a read after a transaction without effect shows another session's write", transactionCatchesUp},
	{"a watch is set in the order of the requests", watchIsSetInOrder},
}

func repliesInOrder(t *testing.T, s *fixture) {
	p := s.peer(t, 1)
	var xids []int32
	for i := range 50 {
		path := s.path(fmt.Sprintf("n%d", i))
		xids = append(xids,
			p.send(wire.OpCreate, creation(path, "", 0)),
			p.send(wire.OpExists, look(path)),
			p.send(wire.OpSetData, setting(path, "x", 9)),
			p.send(wire.OpDelete, anyVersion(path)),
			p.send(wire.OpExists, look(path)),
		)
	}
	want := []wire.Code{wire.OK, wire.OK, wire.BadVersion, wire.OK, wire.NoNode}
	for i, xid := range xids {
		require.Equal(t, want[i%len(want)], p.answer(xid).Err, "request %d", i)
	}
}

func eventBeforeOwnReply(t *testing.T, s *fixture) {
	for i := range s.target.Servers {
		p := s.peer(t, i)
		path := s.path(fmt.Sprintf("a%d", i))
		require.Equal(t, wire.NoNode, p.code(wire.OpExists, watch(path)))
		require.Equal(t, 1, p.doOK(wire.OpCreate, creation(path, "", 0)).before)
		p.doOK(wire.OpGetData, watch(path))
		require.Equal(t, 1, p.doOK(wire.OpSetData, setting(path, "x", 0)).before)
		p.doOK(wire.OpGetData, watch(path))
		p.doOK(wire.OpGetChildren, watch(s.root))
		require.Equal(t, 2, p.doOK(wire.OpDelete, anyVersion(path)).before)
		p.wantEvents(created(path), changed(path), deleted(path), children(s.root))
	}
}

func eventBeforeChange(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	watcher.create(s.path("a"), "", 0)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	actor.sync(s.root)
	actor.set(s.path("a"), "x")
	soon(t, "the change is seen", func() bool { return watcher.stat(s.path("a")).Version == 1 })
	require.Len(t, watcher.events, 1, "the event came first")
}

func readSeesOwnWrite(t *testing.T, s *fixture) {
	for i := range s.target.Servers {
		p := s.peer(t, i)
		path := s.path(fmt.Sprintf("a%d", i))
		create := p.send(wire.OpCreate, creation(path, "", 0))
		list := p.send(wire.OpGetChildren, look(s.root))
		require.Equal(t, wire.OK, p.answer(create).Err)
		r := p.answer(list)
		require.Contains(t, r.body.Strings(), fmt.Sprintf("a%d", i))
	}
}

func transactionCatchesUp(t *testing.T, s *fixture) {
	readers := make([]*peer, len(s.target.Servers))
	for i := range readers {
		readers[i] = s.peer(t, i)
	}
	writer := s.peer(t, 0)
	for n := range 20 {
		path := writer.create(s.path("n-"), "", wire.FlagSequential)
		for i, reader := range readers {
			reader.sync(s.root)
			_, is := reader.exists(path)
			require.True(t, is, "write %d on server %d", n, i)
		}
	}
}

// watchIsSetInOrder checks that a list that is sent between two creates sets its watch between
// them: only the second create fires it. So a client may send a list directly after a create.
func watchIsSetInOrder(t *testing.T, s *fixture) {
	p := s.peer(t, 1)
	create := p.send(wire.OpCreate, creation(s.path("a"), "", 0))
	list := p.send(wire.OpGetChildren, watch(s.root))
	again := p.send(wire.OpCreate, creation(s.path("b"), "", 0))
	require.Zero(t, p.answer(create).before)
	require.Zero(t, p.answer(list).before)
	require.Equal(t, 1, p.answer(again).before)
	p.wantEvents(children(s.root))
}
