package ensemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfigNamesTheBadValue(t *testing.T) {
	for _, c := range []struct {
		config Config
		says   string
	}{
		{Config{Servers: -1}, "Servers is -1"},
		{Config{Servers: 8}, "Servers is 8"},
		{Config{Servers: 5, Observers: 3}, "Servers is 5"},
		{Config{Observers: -1}, "Observers is -1"},
		{Config{Servers: 1, Observers: 1}, "Observers is 1 with 1 Servers"},
		{Config{ObserverMasters: true, Links: true}, "ObserverMasters needs Observers"},
		{Config{ObserverMasters: true, Observers: 1}, "ObserverMasters needs Observers and Links"},
		{Config{Tick: time.Millisecond}, "Tick is 1ms"},
		{Config{InitLimit: -1}, "InitLimit -1"},
		{Config{SyncLimit: -2}, "SyncLimit -2"},
		{Config{ContainerCheck: time.Microsecond}, "ContainerCheck is 1µs"},
		{Config{HeapMB: 1}, "HeapMB is 1"},
		{Config{DiskMB: 1}, "DiskMB is 1"},
		{Config{Patience: -time.Second}, "Patience is -1s"},
	} {
		_, err := Start(t.Context(), c.config)
		require.ErrorContains(t, err, c.says)
	}
}

func TestConfigDefaults(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	c := Config{SyncLimit: 5}.withDefaults()
	require.Equal(t, 3, c.Servers)
	require.Equal(t, 500*time.Millisecond, c.Tick)
	require.Equal(t, 20, c.InitLimit)
	require.Equal(t, 5, c.SyncLimit)
}

func TestServerKnowsItsPeersThroughLinks(t *testing.T) {
	l := &layout{dir: "d", client: []int{1, 2}, quorum: []int{3, 4}, election: []int{5, 6}}
	require.Equal(t, "server.2=127.0.0.1:4:6", l.peer(0, 1, nil))

	links, err := newLinks(l.quorum, l.election)
	require.NoError(t, err)
	defer links.close()
	require.Equal(t, "server.1=127.0.0.1:3:5", l.peer(0, 0, links), "itself directly")
	require.NotEqual(t, "server.2=127.0.0.1:4:6", l.peer(0, 1, links))
	require.Contains(t, l.peer(0, 1, links), "server.2="+links.quorum[0][1].Addr()+":")
}
