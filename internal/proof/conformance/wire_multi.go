package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireMulti = []behaviour{
	{"all parts happen under one zxid", partsShareOneZxid},
	{"a failed multi changes nothing", failedMultiChangesNothing},
	{"a failed multi answers with its codes in order", failedMultiAnswersInOrder},
	{"create2 in a multi is answered as create", create2InMultiIsCreate},
	{"an empty multi succeeds", emptyMultiSucceeds},
	{"a multi with a check only changes nothing and proves that the node exists", checkProvesTheNode},
	{"a check in a multi guards against a re-created node", checkGuards},
	{"a part with a TTL's flags and no TTL fails the request", partWithoutTTLFailsAll},
	{"a create that its own multi undoes counts for sequence numbers", undoneCreateCounts},
	{"a create that its own multi undoes fires watches of the name", undoneCreateFiresWatches},
	{"a multi that creates a node and deletes it fails if the node exists", undoneCreateIsRefused},
	{"multiRead answers each part by itself", multiReadAnswersEach},
}

func partsShareOneZxid(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("old"), "", 0)
	r := p.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("n-"), "", wire.FlagSequential)),
		part(wire.OpCreate, creation(s.path("a"), "", 0)),
		part(wire.OpSetData, setting(s.path("a"), "x", 0)),
		part(wire.OpCheck, num(s.path("a"), 1)),
		part(wire.OpDelete, anyVersion(s.path("old"))),
	))
	got := r.results(p)
	require.Len(t, got, 5)
	require.Equal(t, result{op: wire.OpCreate, path: s.path("n-0000000001")}, got[0])
	require.Equal(t, result{op: wire.OpCreate, path: s.path("a")}, got[1])
	require.Equal(t, wire.OpSetData, got[2].op)
	require.Equal(t, result{op: wire.OpCheck}, got[3])
	require.Equal(t, result{op: wire.OpDelete}, got[4])

	require.Equal(t, r.Zxid, p.stat(s.path("n-0000000001")).Czxid)
	a := p.stat(s.path("a"))
	require.Equal(t, got[2].stat, a)
	require.Equal(t, r.Zxid, a.Czxid)
	require.Equal(t, r.Zxid, a.Mzxid)
	require.Equal(t, r.Zxid, p.stat(s.root).Pzxid)
}

// partWithoutTTLFailsAll writes after each failure, because a real leader assumes that the first
// part's node exists until its next transaction.
func partWithoutTTLFailsAll(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for _, flags := range []int32{wire.FlagTTL, wire.FlagPersistentSequentialTTL} {
		require.Equal(t, wire.MarshallingError, p.code(wire.OpMulti, parts(
			part(wire.OpCreate, creation(s.path("a"), "", 0)),
			part(wire.OpCreate, creation(s.path("b"), "", flags)),
		)))
		p.set(s.root, "")
	}
	require.Empty(t, p.children(s.root))
}

// undoneCreateCounts checks that the parent counts a create that is undone, so that the next
// sequential node gets a later number. A queue's recoverer skips numbers in this way.
func undoneCreateCounts(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("i-"), "", wire.FlagSequential)
	before := p.stat(s.root)
	r := p.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("i-0000000001"), "", 0)),
		part(wire.OpDelete, num(s.path("i-0000000001"), 0)),
		part(wire.OpCreate, creation(s.path("i-0000000002"), "", 0)),
		part(wire.OpDelete, anyVersion(s.path("i-0000000002"))),
		part(wire.OpCreate, creation(s.path("i-"), "", wire.FlagSequential)),
	))
	require.Equal(t, []result{
		{op: wire.OpCreate, path: s.path("i-0000000001")}, {op: wire.OpDelete},
		{op: wire.OpCreate, path: s.path("i-0000000002")}, {op: wire.OpDelete},
		{op: wire.OpCreate, path: s.path("i-0000000003")},
	}, r.results(p))
	require.ElementsMatch(t, []string{"i-0000000000", "i-0000000003"}, p.children(s.root))
	after := p.stat(s.root)
	require.Equal(t, r.Zxid, after.Pzxid)
	require.Equal(t, before.NumChildren+1, after.NumChildren)
	require.Equal(t, before.Cversion+5, after.Cversion, "three creates and two deletes")

	r = p.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("i-0000000004"), "", 0)),
		part(wire.OpDelete, num(s.path("i-0000000004"), 0)),
	))
	require.Equal(t, r.Zxid, p.stat(s.root).Pzxid, "the list was changed, though it is as before")
	require.Equal(t, s.path("i-0000000005"), p.create(s.path("i-"), "", wire.FlagSequential))
}

func undoneCreateFiresWatches(t *testing.T, s *fixture) {
	watcher, actor := s.pair(t)
	require.Equal(t, wire.NoNode, watcher.code(wire.OpExists, watch(s.path("a"))))
	actor.sync(s.root)
	actor.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("a"), "", 0)),
		part(wire.OpDelete, num(s.path("a"), 0)),
	))
	watcher.wantEvents(created(s.path("a")))
	_, is := watcher.exists(s.path("a"))
	require.False(t, is)
}

// undoneCreateIsRefused checks that a transaction that creates a node and deletes it fails if the
// node exists. A put finds in this way that an item with its id was put before.
func undoneCreateIsRefused(t *testing.T, s *fixture) {
	p, watcher := s.peer(t, 0), s.peer(t, 0)
	p.create(s.path("former"), "data", 0)
	before, parent := p.stat(s.path("former")), p.stat(s.root)
	watcher.sync(s.root)
	watcher.doOK(wire.OpGetData, watch(s.path("former")))
	r := p.doOK(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("present"), "", 0)),
		part(wire.OpCreate, creation(s.path("former"), "", 0)),
		part(wire.OpDelete, anyVersion(s.path("former"))),
		part(wire.OpCreate, creation(s.path("i-"), "", wire.FlagSequential)),
	))
	got := r.results(p)
	require.Equal(t, wire.OK, got[0].code)
	require.Equal(t, wire.NodeExists, got[1].code)
	require.Equal(t, before, p.stat(s.path("former")))
	require.Equal(t, parent, p.stat(s.root))
	watcher.wantNoEvents()
}

func failedMultiChangesNothing(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("a"), "data", 0)
	before, parent := p.stat(s.path("a")), p.stat(s.root)
	watcher := s.peer(t, 0)
	watcher.sync(s.root)
	watcher.doOK(wire.OpGetData, watch(s.path("a")))
	watcher.doOK(wire.OpGetChildren, watch(s.root))

	r := p.doOK(wire.OpMulti, parts(
		part(wire.OpSetData, setting(s.path("a"), "other", 0)),
		part(wire.OpCreate, creation(s.path("b"), "", 0)),
		part(wire.OpDelete, num(s.path("a"), 5)),
	))
	require.Equal(t, wire.BadVersion, r.results(p)[2].code)
	require.Equal(t, before, p.stat(s.path("a")))
	require.Equal(t, parent, p.stat(s.root))
	watcher.wantNoEvents()
}

func failedMultiAnswersInOrder(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.do(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("a"), "", 0)),
		part(wire.OpCreate, creation(s.path("b"), "", 0)),
		part(wire.OpDelete, anyVersion(s.path("none"))),
		part(wire.OpCheck, num(s.root, 0)),
		part(wire.OpSetData, setting(s.path("none"), "", 0)),
	))
	require.Equal(t, wire.OK, r.Err, "the header's")
	require.Equal(t, []result{
		{op: wire.OpError, code: wire.OK},
		{op: wire.OpError, code: wire.OK},
		{op: wire.OpError, code: wire.NoNode},
		{op: wire.OpError, code: wire.RuntimeInconsistency},
		{op: wire.OpError, code: wire.RuntimeInconsistency},
	}, r.results(p))
}

func create2InMultiIsCreate(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.doOK(wire.OpMulti, parts(part(wire.OpCreate2, creation(s.path("a"), "", 0))))
	require.Equal(t, []result{{op: wire.OpCreate, path: s.path("a")}}, r.results(p))
}

func emptyMultiSucceeds(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.doOK(wire.OpMulti, parts())
	require.Empty(t, r.results(p))
}

// checkProvesTheNode checks what a session's lease relies on.
func checkProvesTheNode(t *testing.T, s *fixture) {
	p, watcher := s.peer(t, 0), s.peer(t, 0)
	p.create(s.path("e"), "", wire.FlagEphemeral)
	before := p.stat(s.path("e"))
	watcher.sync(s.root)
	watcher.doOK(wire.OpGetData, watch(s.path("e")))

	r := p.doOK(wire.OpMulti, parts(part(wire.OpCheck, anyVersion(s.path("e")))))
	require.Equal(t, []result{{op: wire.OpCheck}}, r.results(p))
	require.Greater(t, r.Zxid, before.Czxid, "a transaction of its own")
	require.Equal(t, before, p.stat(s.path("e")))
	watcher.wantNoEvents()

	p.delete(s.path("e"))
	r = p.doOK(wire.OpMulti, parts(part(wire.OpCheck, anyVersion(s.path("e")))))
	require.Equal(t, []result{{op: wire.OpError, code: wire.NoNode}}, r.results(p))
}

func checkGuards(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("job"), "", 0)
	p.set(s.path("job"), "claimed")
	guarded := parts(part(wire.OpCheck, num(s.path("job"), 1)),
		part(wire.OpCreate, creation(s.path("done-"), "", wire.FlagSequential)))
	r := p.doOK(wire.OpMulti, guarded)
	require.Equal(t, wire.OK, r.results(p)[0].code)

	p.delete(s.path("job"))
	p.create(s.path("job"), "", 0)
	r = p.doOK(wire.OpMulti, guarded)
	require.Equal(t, wire.BadVersion, r.results(p)[0].code, "a new node starts at version 0")
}

func multiReadAnswersEach(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("a"), "data", 0)
	r := p.doOK(wire.OpMultiRead, parts(
		part(wire.OpGetData, look(s.path("a"))),
		part(wire.OpGetData, look(s.path("none"))),
		part(wire.OpGetChildren, look(s.root)),
		part(wire.OpGetChildren, look(s.path("none"))),
	))
	got := r.results(p)
	require.Len(t, got, 4)
	require.Equal(t, result{op: wire.OpGetData, data: "data", stat: p.stat(s.path("a"))}, got[0])
	require.Equal(t, result{op: wire.OpError, code: wire.NoNode}, got[1])
	require.Equal(t, result{op: wire.OpGetChildren, kids: []string{"a"}}, got[2])
	require.Equal(t, result{op: wire.OpError, code: wire.NoNode}, got[3])
}
