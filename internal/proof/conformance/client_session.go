package conformance

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

var clientSession = []behaviour{
	{"ephemerals are deleted when the session is closed", ephemeralsEndWithClose},
	{"ephemerals remain when the connection is lost", ephemeralsOutliveConnection},
	{"an expired session is lost with its ephemerals", expiredSessionIsLost},
	{"credentials are sent again on reconnect", credentialsAreSentAgain},
}

func ephemeralsEndWithClose(t *testing.T, s *fixture) {
	owner, watcher := s.client(t), s.client(t)
	path := owner.create(s.path("e-"), "", zk.FlagEphemeral|zk.FlagSequence)
	owner.create(s.path("stays"), "", 0)
	watcher.sync(s.root)
	is, stat, gone, err := watcher.ExistsW(path)
	require.NoError(t, err)
	require.True(t, is)
	require.Equal(t, owner.SessionID(), stat.EphemeralOwner)
	owner.Close()
	wantEvent(t, gone, zk.EventNodeDeleted, path)
	require.NotNil(t, watcher.stat(s.path("stays")))
}

func ephemeralsOutliveConnection(t *testing.T, s *fixture) {
	owner := s.client(t)
	path := owner.create(s.path("e"), "", zk.FlagEphemeral)
	before := owner.stat(path)
	owner.reconnect(func() {})
	owner.sync(s.root)
	require.Equal(t, before, owner.stat(path))
}

func expiredSessionIsLost(t *testing.T, s *fixture) {
	watcher := s.client(t)
	var owner *client
	var session int64
	var path string
	var gone <-chan zk.Event
	for is := false; !is; { // on a slow machine, the session may expire before all is ready
		owner = s.clientFor(t, time.Second)
		session = owner.SessionID()
		var err error
		path, err = owner.Create(s.path("e-"), nil, zk.FlagEphemeral|zk.FlagSequence, openACL)
		if errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrConnectionClosed) {
			continue
		}
		require.NoError(t, err)
		watcher.sync(s.root)
		is, _, gone, err = watcher.ExistsW(path)
		require.NoError(t, err)
	}
	owner.network.cut()
	wantEvent(t, gone, zk.EventNodeDeleted, path)
	owner.network.heal()
	owner.wantState(zk.StateExpired)
	owner.wantState(zk.StateHasSession)
	require.NotEqual(t, session, owner.SessionID())
}

func credentialsAreSentAgain(t *testing.T, s *fixture) {
	owner := s.client(t).owner()
	_, err := owner.Create(s.path("a"), nil, 0, ownerACL(0))
	require.NoError(t, err)
	owner.reconnect(func() {})
	owner.sync(s.root)
	_, _, err = owner.Get(s.path("a"))
	require.NoError(t, err)
}
