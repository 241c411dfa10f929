package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireRewatch = []behaviour{
	{"setWatches reports what was missed", setWatchesReportsMissed},
	{"setWatches reports nothing if nothing was missed", setWatchesReportsNothing},
	{"setWatches reports nodes that were deleted and created", setWatchesReportsPresence},
	{"setWatches2 also sets persistent watches", setWatches2SetsPersistent},
}

func (p *peer) setWatches(op wire.Op, body *wire.SetWatchesRequest) {
	p.t.Helper()
	body.Two = op == wire.OpSetWatches2
	p.sendAs(wire.XidSetWatches, op, body)
	require.Equal(p.t, wire.OK, p.answer(wire.XidSetWatches).Err)
}

// reconnected returns a peer with p's session on a new connection, and the last zxid that p had
// seen.
func (s *fixture) reconnected(t *testing.T, p *peer) (*peer, int64) {
	t.Helper()
	p.sync(s.root)
	seen := p.doOK(wire.OpExists, look(s.root)).Zxid
	p.conn.Close()
	anew := s.resume(t, 1, p.again())
	anew.xid = p.xid // as in sessionMovesToServer
	anew.sync(s.root)
	return anew, seen
}

func setWatchesReportsMissed(t *testing.T, s *fixture) {
	p, actor := s.pair(t)
	for _, name := range []string{"data", "kids", "both"} {
		p.create(s.path(name), "", 0)
	}
	p, seen := s.reconnected(t, p)
	actor.sync(s.root)
	actor.set(s.path("data"), "x")
	actor.create(s.path("kids", "k"), "", 0)
	p.sync(s.root)
	p.setWatches(wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{s.path("data"), s.path("both")},
		Child:        []string{s.path("kids"), s.path("both")},
	})
	require.Len(t, p.events, 2, "the events come before the reply")
	p.wantEvents(changed(s.path("data")), children(s.path("kids")))
	actor.set(s.path("both"), "x")
	p.wantEvents(changed(s.path("both")))
	actor.create(s.path("both", "k"), "", 0)
	p.wantEvents(children(s.path("both")))
	p.wantNoEvents()
}

func setWatchesReportsNothing(t *testing.T, s *fixture) {
	p, actor := s.pair(t)
	p.create(s.path("a"), "", 0)
	p, seen := s.reconnected(t, p)
	p.setWatches(wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{s.path("a")},
		Exist:        []string{s.path("b")},
		Child:        []string{s.path("a"), s.root},
	})
	p.wantNoEvents()
	actor.sync(s.root)
	actor.create(s.path("b"), "", 0)
	p.wantEvents(created(s.path("b")), children(s.root))
}

func setWatchesReportsPresence(t *testing.T, s *fixture) {
	p, actor := s.pair(t)
	p.create(s.path("gone"), "", 0)
	p, seen := s.reconnected(t, p)
	actor.sync(s.root)
	actor.delete(s.path("gone"))
	actor.create(s.path("come"), "", 0)
	p.sync(s.root)
	p.setWatches(wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{s.path("gone")},
		Exist:        []string{s.path("come")},
		Child:        []string{s.path("gone")},
	})
	p.wantEvents(deleted(s.path("gone")), created(s.path("come")), deleted(s.path("gone")))
	p.wantNoEvents()
}

func setWatches2SetsPersistent(t *testing.T, s *fixture) {
	p, actor := s.pair(t)
	p.create(s.path("a"), "", 0)
	p, seen := s.reconnected(t, p)
	actor.sync(s.root)
	actor.set(s.path("a"), "missed, and nobody tells")
	p.sync(s.root)
	p.setWatches(wire.OpSetWatches2, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Persistent:   []string{s.path("a")},
		Recurse:      []string{s.path("r")},
	})
	p.wantNoEvents()
	actor.set(s.path("a"), "1")
	actor.set(s.path("a"), "2")
	actor.create(s.path("r"), "", 0)
	actor.create(s.path("r", "kid"), "", 0)
	p.wantEvents(changed(s.path("a")), changed(s.path("a")), created(s.path("r")), created(s.path("r", "kid")))
	p.wantNoEvents()
}
