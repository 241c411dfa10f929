package zkserver

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func TestTreeSnapshotIsACopy(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		a.mustCall(wire.OpCreateContainer, createRequest("/d", "data", wire.FlagContainer))
		a.mustCall(wire.OpCreate, createRequest("/d/b", "", wire.FlagEphemeral))
		a.mustCall(wire.OpCreateTTL, createTTL("/d/a", wire.FlagTTL, 1500))
		tree := s.Tree("/d")
		require.Equal(t, []string{"/d", "/d/a", "/d/b"}, []string{tree[0].Path, tree[1].Path, tree[2].Path})
		require.Equal(t, []Kind{Container, TTL, Ephemeral}, []Kind{tree[0].Kind, tree[1].Kind, tree[2].Kind})
		require.Equal(t, 1500*time.Millisecond, tree[1].TTL)
		require.Equal(t, a.session, tree[2].Stat.EphemeralOwner)
		tree[0].Data[0] = 'X'
		n, found := s.Node("/d")
		require.True(t, found)
		require.Equal(t, "data", string(n.Data))
		require.Equal(t, []string{"a", "b"}, s.Children("/d"))
		require.Empty(t, s.Children("/none"))
		require.Empty(t, s.Tree("/none"))
	})
}

func TestSessionsAndWatchesSnapshots(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinFor("a", 5*time.Second), st.joinFor("b", 6*time.Second)
		a.mustCall(wire.OpCreate, createRequest("/2", "", wire.FlagEphemeral))
		a.mustCall(wire.OpCreate, createRequest("/1", "", wire.FlagEphemeral))
		b.mustCall(wire.OpGetChildren, watchRequest("/1"))
		b.mustCall(wire.OpAddWatch, numberRequest("/1", wire.AddWatchPersistentRecursive))
		a.call(wire.OpExists, watchRequest("/0"))
		sessions := s.Sessions()
		require.Equal(t, []int64{a.session, b.session}, []int64{sessions[0].ID, sessions[1].ID})
		require.Equal(t, 5*time.Second, sessions[0].Timeout)
		require.Equal(t, time.Now().Add(5*time.Second), sessions[0].Expires)
		require.True(t, sessions[0].Connected)
		require.Equal(t, []string{"/1", "/2"}, sessions[0].Ephemerals)
		require.Equal(t, []Watch{
			{Path: "/0", Session: a.session},
			{Path: "/1", Session: b.session, Mode: PersistentRecursive},
			{Path: "/1", Session: b.session, Children: true, Mode: PersistentRecursive},
		}, s.Watches())
		require.Equal(t, 3, s.WatchCount())
		require.Equal(t, int64(2), s.Requests()[wire.OpCreate])
	})
}

func TestFourLetterWords(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		a.mustCall(wire.OpCreate, createRequest("/e", "", wire.FlagEphemeral))
		a.mustCall(wire.OpExists, watchRequest("/e"))
		a.mustCall(wire.OpGetChildren, watchRequest("/e"))
		ask := func(word string) string {
			nc := st.dial()
			_, err := nc.Write([]byte(word))
			require.NoError(t, err)
			answer, err := io.ReadAll(nc)
			require.NoError(t, err)
			return string(answer)
		}
		require.Equal(t, "imok", ask("ruok"))
		require.Equal(t, "rw", ask("isro"))
		require.Equal(t, "1 connections watching 1 paths\nTotal watches:1\n", ask("wchs"))
		require.Equal(t, fmt.Sprintf("0x%x\n\t/e\n\n", a.session), ask("wchc"))
		require.Equal(t, fmt.Sprintf("/e\n\t0x%x\n\n", a.session), ask("wchp"))
		dump := ask("dump")
		require.Contains(t, dump,
			"SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at "+s.Sessions()[0].Expires.Format(javaDate))
		require.Contains(t, dump,
			fmt.Sprintf("ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x%x:\n\t/e\nConnections dump:\n",
				a.session))
		require.Contains(t, dump, fmt.Sprintf("sessionId: 0x%x\n", a.session))
		require.Equal(t, "datadir_size: 0\nlogdir_size: 0\n", ask("dirs"))
		require.Equal(t, "306", ask("gtmk"))
		require.Equal(t, "256", ask("stmk\x00\x00\x00\x00\x00\x00\x01\x00"))
		require.Equal(t, "256", ask("gtmk"))
		require.Empty(t, ask("hash"))
		require.Contains(t, ask("conf"), "clientPort=-1\n")
		require.Contains(t, ask("conf"), "tickTime=1000\n")
		require.Contains(t, ask("conf"), "minSessionTimeout=2000\nmaxSessionTimeout=20000\n")
		require.Contains(t, ask("envi"), "zookeeper.version=3.8.0")
		require.Contains(t, ask("cons"), fmt.Sprintf("sid=0x%x,lop=NA,est=", a.session))
		for _, word := range []string{"srvr", "stat"} {
			answer := ask(word)
			require.True(t, strings.HasPrefix(answer, "Zookeeper version: 3.8.0"), answer)
			require.Contains(t, answer, "Mode: standalone\nNode count: 6\n")
			require.Contains(t, answer, fmt.Sprintf("Zxid: 0x%x\n", s.Zxid()))
		}
		monitor := ask("mntr")
		for _, line := range []string{"zk_server_state\tstandalone", "zk_znode_count\t6", "zk_watch_count\t2",
			"zk_ephemerals_count\t1",
			"zk_num_alive_connections\t2", "zk_global_sessions\t1", "zk_auth_failed_count\t0", "zk_local_sessions\t0"} {
			require.Contains(t, monitor, line+"\n")
		}
		require.Regexp(t, `\nzk_max_file_descriptor_count\t-?[1-9]\d*\n(.*\n)?zk_open_file_descriptor_count\t-?[1-9]\d*\n`, monitor)
		require.Contains(t, monitor, "zk_packets_received\t")
		require.Equal(t, "Server stats reset.\n", ask("srst"))
		require.Contains(t, ask("srvr"), "\nReceived: 1\nSent: 1\n")
		require.Equal(t, "Connection stats reset.\n", ask("crst"))
		require.Contains(t, ask("cons"), fmt.Sprintf("(queued=0,recved=0,sent=0,sid=0x%x", a.session))
	})
}
