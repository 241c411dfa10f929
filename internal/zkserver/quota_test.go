package zkserver

import (
	"math/rand"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func TestQuotaValues(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "count=-1,bytes=-1",
		"count=4,bytes=5":                  "count=4,bytes=5",
		"count=4,bytes=5=;countHardLimit=": "", // a real server's parser throws
		"bytes=5=;countHardLimit=7;a=+1":   "count=-1,bytes=5=;a=1;countHardLimit=7",
		"count==4":                         "count=-1,bytes=-1",
		",;":                               "count=-1,bytes=-1",
		",count=1":                         "",
		"count=1,;;bytes=2,":               "count=1,bytes=2",
		"count":                            "",
		"=":                                "",
		"=4":                               "count=-1,bytes=-1=;=4",
		"count=x":                          "",
		"count=9223372036854775808":        "",
	} {
		numbers, ok := parseQuota([]byte(text))
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, string(numbers.encode()), text)
		}
	}
	_, ok := parseQuota(nil)
	require.False(t, ok, "a node without data")
}

// FuzzQuotaValues parses any data, since clients may write any data into the nodes of a quota.
func FuzzQuotaValues(f *testing.F) {
	for _, text := range []string{"count=4,bytes=5=;countHardLimit=10", "bytes=-1", "a==4;;b=", ",", "=;=1",
		"count=1,count=2"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		numbers, ok := parseQuota(data)
		if !ok {
			return
		}
		written := numbers.encode()
		again, ok := parseQuota(written)
		require.True(t, ok, "%q", written)
		require.Equal(t, string(written), string(again.encode()))
	})
}

// TestQuotaUsageMatchesTheTree compares the usage with a count of the nodes, after random writes,
// failed transactions and ends of sessions.
func TestQuotaUsageMatchesTheTree(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, random := st.joinFor("a", 0), rand.New(rand.NewSource(3))
		for _, path := range []string{"/zookeeper/quota/n1", "/zookeeper/quota/n1/zookeeper_limits",
			"/zookeeper/quota/n1/zookeeper_stats"} {
			a.mustCall(wire.OpCreate, createRequest(path, "", 0))
		}
		most := int64(0)
		for range 300 {
			b := st.joinFor("b", 0)
			for range 1 + random.Intn(3) {
				m := multiRequest()
				for range 1 + random.Intn(6) {
					m.Parts = append(m.Parts, randomPart(random))
				}
				b.mustCall(wire.OpMulti, m)
				p := randomPart(random)
				b.call(p.Op, p.Body)
			}
			most = max(most, requireUsage(t, s))
			if random.Intn(2) == 0 {
				b.mustCall(wire.OpCloseSession, &wire.EmptyRequest{})
				requireUsage(t, s)
			}
		}
		require.Greater(t, most, int64(2), "the random writes have created nodes")
	})
}

func requireUsage(t *testing.T, s *Server) int64 {
	t.Helper()
	usage := quotaValues{quotaCount: 0, quotaBytes: 0}
	for _, n := range s.Tree("/n1") {
		usage.addUsage(1, int64(len(n.Data)))
	}
	node, _ := s.Node("/zookeeper/quota/n1/zookeeper_stats")
	require.Equal(t, string(usage.encode()), string(node.Data))
	require.Zero(t, node.Stat.Version)
	return usage[quotaCount]
}

func TestInvalidQuotaUsageIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		for path, data := range map[string]string{"/q": "", "/zookeeper/quota/q": ""} {
			a.mustCall(wire.OpCreate, createRequest(path, data, 0))
		}
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quota/q/zookeeper_limits", "count=1", 0))
		a.mustCall(wire.OpCreate, createRequest("/q/uncounted", "", 0))
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quota/q/zookeeper_stats", "", 0))
		a.mustCall(wire.OpSetData, setDataRequest("/zookeeper/quota/q/zookeeper_stats", "garbage", -1))
		a.mustCall(wire.OpCreate, createRequest("/q/kid", "", 0))
		node, _ := s.Node("/zookeeper/quota/q/zookeeper_stats")
		require.Equal(t, "garbage", string(node.Data))
		checkInvariants(t, s)
	})
}

// TestRootHasNoQuota creates nodes that look like a quota on the root.
func TestRootHasNoQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{EnforceQuota: true})
		a := newTestClients(t, s).joinClient("a")
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quota/zookeeper_limits", "countHardLimit=0", 0))
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quota/zookeeper_stats", "", 0))
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quotas", "", 0))
		a.mustCall(wire.OpCreate, createRequest("/zookeeper/quotas/zookeeper_limits", "countHardLimit=0", 0))
		a.mustCall(wire.OpCreate, createRequest("/a", "", 0))
		require.Empty(t, s.db.tree.quotas)
	})
}

func TestDeepestQuotaApplies(t *testing.T) {
	tree := newDataTree()
	tree.quotas = map[string]struct{}{"/a": {}, "/a/b/c": {}}
	for path, want := range map[string]string{"/": "", "": "", "/a": "/a", "/a/b": "/a", "/ab": "",
		"/a/b/c/d/e": "/a/b/c", "relative": ""} {
		require.Equal(t, want, tree.quotaOf(path), path)
	}
	for path, want := range map[string]string{
		"/zookeeper/quota/a/b/zookeeper_limits": "/a/b", "/zookeeper/quota/zookeeper_limits": "",
		"/zookeeper/quota/a/other":           "",
		"/zookeeper/quotaa/zookeeper_limits": "", "/a/zookeeper_limits": "", "/zookeeper/quota//zookeeper_stats": "",
	} {
		on, _, is := quotaPath(path)
		require.Equal(t, want != "", is, path)
		if is {
			require.Equal(t, want, on)
		}
	}
}
