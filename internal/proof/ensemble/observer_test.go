package ensemble

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObserverFollowsTheLeader(t *testing.T) {
	e := Private(t, Config{NoFsync: true, Links: true, Observers: 1, SyncLimit: 4})
	require.Equal(t, 4, e.Size())
	eventually(t, "the observer observes", func() bool { return e.Mode(3) == "observer" })
	leader, _ := awaitRoles(t, e)
	require.Nil(t, e.MasterLink(3))
	require.Equal(t, -1, e.Master(3))
	require.NoError(t, e.CutOff(3, leader))
	eventually(t, "the observer no longer serves", func() bool { return e.Mode(3) == "" })
	e.Heal()
	require.NoError(t, e.Await(t.Context()))
}

func TestObserverFollowsAFollower(t *testing.T) {
	e := Private(t, Config{NoFsync: true, Links: true, Observers: 1, ObserverMasters: true})
	eventually(t, "a follower serves the observer",
		func() bool { return e.Mode(3) == "observer" && slices.Contains(e.Followers(), e.Master(3)) })
	require.NotNil(t, e.MasterLink(3))
	require.Nil(t, e.MasterLink(0))

	old := e.Master(3)
	require.NoError(t, e.Kill(old))
	eventually(t, "another follower serves the observer",
		func() bool { m := e.Master(3); return m >= 0 && m != old && e.Mode(3) == "observer" })
	require.NoError(t, e.Restart(old))
	require.NoError(t, e.Await(t.Context()))
}
