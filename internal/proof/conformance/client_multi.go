package conformance

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientMulti = []behaviour{
	{"a transaction answers part by part", transactionAnswers},
	{"a transaction fails as a whole and reports the part", transactionFailsAsWhole},
	{"a create with a set gives the node's stat", createWithSetGivesStat},
}

func transactionAnswers(t *testing.T, s *fixture) {
	c := s.client(t)
	got, err := c.Multi(
		&zk.CreateRequest{Path: s.path("a"), Data: []byte("x"), Acl: openACL},
		&zk.CreateRequest{Path: s.path("n-"), Acl: openACL, Flags: zk.FlagSequence | zk.FlagEphemeral},
		&zk.SetDataRequest{Path: s.path("a"), Data: []byte("yy"), Version: 0},
		&zk.CheckVersionRequest{Path: s.path("a"), Version: 1},
		&zk.DeleteRequest{Path: s.path("a"), Version: 1},
	)
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.Equal(t, s.path("a"), got[0].String)
	require.Equal(t, s.path("n-0000000001"), got[1].String)
	require.EqualValues(t, 1, got[2].Stat.Version)
	require.Nil(t, c.stat(s.path("a")))
	require.Equal(t, c.SessionID(), c.stat(s.path("n-0000000001")).EphemeralOwner)
}

func transactionFailsAsWhole(t *testing.T, s *fixture) {
	c := s.client(t)
	got, err := c.Multi(
		&zk.CreateRequest{Path: s.path("a"), Acl: openACL},
		&zk.DeleteRequest{Path: s.path("none"), Version: -1},
		&zk.CreateRequest{Path: s.path("b"), Acl: openACL},
	)
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.Len(t, got, 3)
	require.NoError(t, got[0].Error)
	require.ErrorIs(t, got[1].Error, zk.ErrNoNode)
	require.Error(t, got[2].Error)
	require.Nil(t, c.stat(s.path("a")))
}

func createWithSetGivesStat(t *testing.T, s *fixture) {
	c := s.client(t)
	got, err := c.Multi(
		&zk.CreateRequest{Path: s.path("a"), Acl: openACL, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: s.path("a"), Data: []byte("x"), Version: 0},
	)
	require.NoError(t, err)
	require.Equal(t, c.stat(s.path("a")), got[1].Stat)
	require.Equal(t, got[1].Stat.Czxid, got[1].Stat.Mzxid)
	require.Equal(t, c.SessionID(), got[1].Stat.EphemeralOwner)
}
