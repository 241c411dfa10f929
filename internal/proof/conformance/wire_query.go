package conformance

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireQuery = []behaviour{
	{"whoAmI names the identities of the connection", whoAmINames},
	{"getEphemerals lists the session's own", getEphemeralsLists},
	{"getAllChildrenNumber counts all descendants", allChildrenAreCounted},
	{"a ping is answered as a ping with any xid", pingHasItsOwnXid},
	{"a null path is refused", nullPathIsRefused},
	{"the four-letter words ruok and srvr are answered", fourLetterWords},
}

func whoAmINames(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	require.Equal(t, wire.OK, p.auth("digest", ownerCredentials))
	r := p.doOK(wire.OpWhoAmI, &wire.EmptyRequest{})
	var ids []wire.Identity
	for range r.body.Int() {
		ids = append(ids, wire.Identity{Scheme: r.body.String(), ID: r.body.String()})
	}
	require.NoError(t, r.body.Err())
	require.Len(t, ids, 2)
	require.Contains(t, ids, wire.Identity{Scheme: "digest", ID: "owner"})
}

func getEphemeralsLists(t *testing.T, s *fixture) {
	p, other := s.peer(t, 0), s.peer(t, 0)
	p.create(s.path("dir"), "", 0)
	for _, path := range []string{s.path("a"), s.path("dir", "b"), s.path("dir", "c")} {
		p.create(path, "", wire.FlagEphemeral)
	}
	other.create(s.path("dir", "other"), "", wire.FlagEphemeral)
	r := p.doOK(wire.OpGetEphemerals, at(s.path("dir")))
	require.ElementsMatch(t, []string{s.path("dir", "b"), s.path("dir", "c")}, r.body.Strings())
	r = p.doOK(wire.OpGetEphemerals, at("/"))
	require.ElementsMatch(t, []string{s.path("a"), s.path("dir", "b"), s.path("dir", "c")}, r.body.Strings())
}

func allChildrenAreCounted(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for _, path := range []string{s.path("a"), s.path("a", "b"), s.path("a", "b", "c"), s.path("ab")} {
		p.create(path, "", 0)
	}
	for path, want := range map[string]int32{s.root: 4, s.path("a"): 2, s.path("ab"): 0} {
		r := p.doOK(wire.OpGetAllChildrenNumber, at(path))
		require.Equal(t, want, r.body.Int(), path)
	}
	require.Equal(t, wire.NoNode, p.code(wire.OpGetAllChildrenNumber, at(s.path("none"))))
}

func pingHasItsOwnXid(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.sendAs(77, wire.OpPing, &wire.EmptyRequest{})
	require.Equal(t, wire.OK, p.answer(wire.XidPing).Err)
}

func nullPathIsRefused(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for op, body := range map[wire.Op]wire.Request{
		wire.OpExists: look(""), wire.OpGetData: look(""), wire.OpGetChildren: look(""), wire.OpGetACL: at(""),
		wire.OpCreate: creation("", "", 0), wire.OpDelete: anyVersion(""),
		wire.OpCheckWatches: num("", wire.WatcherAny),
	} {
		require.Equal(t, wire.MarshallingError, p.code(op, nullPath{body}), "%v", op)
	}
	require.Equal(t, wire.BadArguments, p.code(wire.OpSetData, nullPath{setting("", "", wire.AnyVersion)}))
}

func fourLetterWords(t *testing.T, s *fixture) {
	require.Equal(t, "imok", s.word(t, "ruok"))
	require.Regexp(t, `(?m)^Mode: (leader|follower|standalone)$`, s.word(t, "srvr"))
}

func (s *fixture) word(t *testing.T, word string) string {
	t.Helper()
	conn, err := s.target.dial("tcp", s.server(0), patience)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, word)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(answer)
}
