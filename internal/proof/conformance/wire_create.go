package conformance

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var wireCreate = []behaviour{
	{"create2 answers with the node's stat", create2AnswersWithStat},
	{"a container shows no owner", containerHasNoOwner},
	{"a TTL node shows no owner", ttlNodeHasNoOwner},
	{"flags that do not fit are refused", flagsAreRefused},
	{"TTLs out of range are refused", ttlsAreRefused},
	{"bad paths are refused", badPathsAreRefused},
	{"a create below a missing parent returns NoNode", missingParentReturnsNoNode},
	{"null data remains null", nullDataRemainsNull},
	{"an ephemeral has no children", ephemeralHasNoChildren},
	{"a refused create uses no sequence number", refusedCreateUsesNoNumber},
}

func create2AnswersWithStat(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.doOK(wire.OpCreate2, creation(s.path("a"), "abc", wire.FlagEphemeral))
	require.Equal(t, s.path("a"), r.body.String())
	stat := r.stat(p)
	require.Equal(t, r.Zxid, stat.Czxid)
	require.Equal(t, r.Zxid, stat.Mzxid)
	require.Equal(t, r.Zxid, stat.Pzxid)
	require.Equal(t, p.session, stat.EphemeralOwner)
	require.EqualValues(t, 3, stat.DataLength)
	require.Equal(t, stat, p.stat(s.path("a")))
}

// containerHasNoOwner checks that a container's stat has no owner, although the server marks
// containers in that field.
func containerHasNoOwner(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.doOK(wire.OpCreateContainer, creation(s.path("c"), "", wire.FlagContainer))
	require.Equal(t, s.path("c"), r.body.String())
	stat := r.stat(p)
	require.Zero(t, stat.EphemeralOwner)
	require.Equal(t, stat, p.stat(s.path("c")))
	p.create(s.path("c", "kid"), "", 0)
}

func ttlNodeHasNoOwner(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	r := p.doOK(wire.OpCreateTTL, creationTTL(s.path("t"), wire.FlagTTL, 60_000))
	require.Equal(t, s.path("t"), r.body.String())
	stat := r.stat(p)
	require.Zero(t, stat.EphemeralOwner)
	require.Equal(t, stat, p.stat(s.path("t")))

	r = p.doOK(wire.OpCreateTTL, creationTTL(s.path("q-"), wire.FlagPersistentSequentialTTL, 60_000))
	require.Equal(t, s.path("q-0000000001"), r.body.String())
}

func flagsAreRefused(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for _, flags := range []int32{-1, 7, 9, math.MaxInt32} {
		require.Equal(t, wire.BadArguments, p.code(wire.OpCreate, creation(s.path("f"), "", flags)), "flags %d", flags)
	}
	for _, flags := range []int32{wire.FlagTTL, wire.FlagPersistentSequentialTTL} {
		require.Equal(t, wire.BadArguments, p.code(wire.OpCreate, creation(s.path("f"), "", flags)), "flags %d", flags)
	}
	_, is := p.exists(s.path("f"))
	require.False(t, is)
}

func ttlsAreRefused(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for _, ttl := range []int64{0, -1, math.MinInt64, 1 << 40, math.MaxInt64} {
		code := p.code(wire.OpCreateTTL, creationTTL(s.path("t"), wire.FlagTTL, ttl))
		require.Equal(t, wire.BadArguments, code, "TTL %d", ttl)
	}
	p.doOK(wire.OpCreateTTL, creationTTL(s.path("t"), wire.FlagTTL, 1<<40-1))
}

func badPathsAreRefused(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	for _, path := range []string{
		"", "relative", s.root + "/", s.root + "//a", s.root + "/./a", s.root + "/../a", s.root + "/.",
		s.root + "/a\x00b", s.root + "/a\x01b", s.root + "/\u007f", s.root + "/\uf8ff", s.root + "/\ufff0",
	} {
		code := p.code(wire.OpCreate, creation(path, "", 0))
		require.Contains(t, []wire.Code{wire.BadArguments, wire.NoNode}, code, "%q", path)
	}
	for _, name := range []string{"...", ".a", "a.b", "a b", "ä", "\u2603", strings.Repeat("x", 300)} {
		p.create(s.path(name), "", 0)
	}
}

func missingParentReturnsNoNode(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	require.Equal(t, wire.NoNode, p.code(wire.OpCreate, creation(s.path("no", "kid"), "", 0)))
	require.Equal(t, wire.NoNode,
		p.code(wire.OpCreate, creation(s.path("no", "kid-"), "", wire.FlagEphemeralSequential)))
}

func nullDataRemainsNull(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.doOK(wire.OpCreate, &wire.CreateRequest{Path: s.path("null"), ACL: wire.WorldACL(wire.PermAll)})
	r := p.doOK(wire.OpGetData, look(s.path("null")))
	require.EqualValues(t, -1, r.body.Int(), "the buffer's length")

	p.create(s.path("empty"), "", 0)
	r = p.doOK(wire.OpGetData, look(s.path("empty")))
	require.Zero(t, r.body.Int(), "the buffer's length")
}

func ephemeralHasNoChildren(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	p.create(s.path("e"), "", wire.FlagEphemeral)
	require.Equal(t, wire.NoChildrenForEphemerals, p.code(wire.OpCreate, creation(s.path("e", "kid"), "", 0)))
}

func refusedCreateUsesNoNumber(t *testing.T, s *fixture) {
	p := s.peer(t, 0)
	require.Equal(t, s.path("n-0000000000"), p.create(s.path("n-"), "", wire.FlagSequential))
	require.Equal(t, wire.NodeExists, p.code(wire.OpCreate, creation(s.path("n-0000000000"), "", 0)))
	require.Equal(t, wire.InvalidACL,
		p.code(wire.OpCreate, &wire.CreateRequest{Path: s.path("n-"), Flags: wire.FlagSequential}))
	r := p.do(wire.OpMulti, parts(
		part(wire.OpCreate, creation(s.path("n-"), "", wire.FlagSequential)),
		part(wire.OpCheck, num(s.root, 77)),
	))
	require.Equal(t, wire.BadVersion, r.results(p)[1].code)
	require.Equal(t, s.path("n-0000000001"), p.create(s.path("n-"), "", wire.FlagSequential))
}
