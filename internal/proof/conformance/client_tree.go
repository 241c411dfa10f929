package conformance

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientTree = []behaviour{
	{"a node is created, changed and deleted", nodeLifecycle},
	{"errors have the right codes", errorsHaveCodes},
	{"versions guard set and delete", versionsGuard},
	{"children are listed and counted", childrenAreListed},
	{"sequence numbers count creates under the parent", sequenceCountsCreates},
	{"sequence numbers begin again with a new parent", sequenceBeginsAgain},
	{"a node's stat shows changes of its children", statsShowChildren},
}

func nodeLifecycle(t *testing.T, s *fixture) {
	c := s.client(t)
	require.Nil(t, c.stat(s.path("a")))
	require.Equal(t, s.path("a"), c.create(s.path("a"), "one", 0))
	data, stat, err := c.Get(s.path("a"))
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	require.Zero(t, stat.Version)
	require.Equal(t, stat.Czxid, stat.Mzxid)
	require.EqualValues(t, 3, stat.DataLength)
	require.Zero(t, stat.EphemeralOwner)

	after, err := c.Set(s.path("a"), []byte("three"), 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, after.Version)
	require.Equal(t, stat.Czxid, after.Czxid)
	require.Greater(t, after.Mzxid, stat.Mzxid)
	require.GreaterOrEqual(t, after.Mtime, stat.Mtime)
	require.EqualValues(t, 5, after.DataLength)

	c.delete(s.path("a"))
	require.Nil(t, c.stat(s.path("a")))
	c.create(s.path("a"), "", 0)
	require.Zero(t, c.stat(s.path("a")).Version, "a new node")
	require.Greater(t, c.stat(s.path("a")).Czxid, after.Mzxid)
}

func errorsHaveCodes(t *testing.T, s *fixture) {
	c := s.client(t)
	c.create(s.path("a"), "", 0)
	c.create(s.path("a", "kid"), "", 0)
	c.create(s.path("e"), "", zk.FlagEphemeral)

	_, err := c.Create(s.path("a"), nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNodeExists)
	_, err = c.Create(s.path("none", "kid"), nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, err = c.Create(s.path("e", "kid"), nil, 0, openACL)
	require.ErrorIs(t, err, zk.ErrNoChildrenForEphemerals)
	_, err = c.Create(s.path("x"), nil, 0, nil)
	require.ErrorIs(t, err, zk.ErrInvalidACL)
	require.ErrorIs(t, c.Delete(s.path("a"), -1), zk.ErrNotEmpty)
	require.ErrorIs(t, c.Delete(s.path("none"), -1), zk.ErrNoNode)
	_, _, err = c.Get(s.path("none"))
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, err = c.Set(s.path("none"), nil, -1)
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = c.Children(s.path("none"))
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = c.GetACL(s.path("none"))
	require.ErrorIs(t, err, zk.ErrNoNode)
}

func versionsGuard(t *testing.T, s *fixture) {
	c := s.client(t)
	c.create(s.path("a"), "", 0)
	_, err := c.Set(s.path("a"), nil, 1)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	_, err = c.Set(s.path("a"), nil, 0)
	require.NoError(t, err)
	require.ErrorIs(t, c.Delete(s.path("a"), 0), zk.ErrBadVersion)
	require.NoError(t, c.Delete(s.path("a"), 1))
}

func childrenAreListed(t *testing.T, s *fixture) {
	c := s.client(t)
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("kid%d", i))
		c.create(s.path(want[i]), "", 0)
	}
	names, stat, err := c.Children(s.root)
	require.NoError(t, err)
	require.ElementsMatch(t, want, names)
	require.EqualValues(t, len(want), stat.NumChildren)
}

func sequenceCountsCreates(t *testing.T, s *fixture) {
	c := s.client(t)
	require.Equal(t, s.path("a-0000000000"), c.create(s.path("a-"), "", zk.FlagSequence))
	c.create(s.path("plain"), "", 0)
	require.Equal(t, s.path("b-0000000002"), c.create(s.path("b-"), "", zk.FlagSequence|zk.FlagEphemeral))
	c.delete(s.path("b-0000000002"))
	c.delete(s.path("plain"))
	require.Equal(t, s.path("a-0000000003"), c.create(s.path("a-"), "", zk.FlagSequence), "deletes do not count")
	require.Equal(t, s.path("0000000004"), c.create(s.root+"/", "", zk.FlagSequence), "a name of its number alone")
	c.create(s.path("a-0000000000", "kid"), "", 0)
	require.Equal(t, s.path("a-0000000005"), c.create(s.path("a-"), "", zk.FlagSequence), "grandchildren do not count")
}

func sequenceBeginsAgain(t *testing.T, s *fixture) {
	c := s.client(t)
	c.create(s.path("dir"), "", 0)
	first := c.create(s.path("dir", "n-"), "", zk.FlagSequence)
	before := c.stat(first).Czxid
	c.delete(first)
	c.delete(s.path("dir"))
	c.create(s.path("dir"), "", 0)
	require.Equal(t, first, c.create(s.path("dir", "n-"), "", zk.FlagSequence))
	require.Greater(t, c.stat(first).Czxid, before, "czxids never start anew")
}

func statsShowChildren(t *testing.T, s *fixture) {
	c := s.client(t)
	before := c.stat(s.root)
	c.create(s.path("a"), "", 0)
	created := c.stat(s.root)
	require.Equal(t, before.Cversion+1, created.Cversion)
	require.Equal(t, c.stat(s.path("a")).Czxid, created.Pzxid)
	require.EqualValues(t, 1, created.NumChildren)
	require.Equal(t, before.Version, created.Version)
	require.Equal(t, before.Mzxid, created.Mzxid)
	c.set(s.path("a"), "x")
	require.Equal(t, created, c.stat(s.root), "a child's data is its own")
	c.delete(s.path("a"))
	deleted := c.stat(s.root)
	require.Equal(t, before.Cversion+2, deleted.Cversion)
	require.Greater(t, deleted.Pzxid, created.Pzxid)
}
