package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// inBubble runs a test in virtual time, with a server and a set of clients.
func inBubble(t *testing.T, test func(*testing.T, *Server, *testClients)) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second, ExactExpiry: true, ExtendedTypes: true})
		test(t, s, newTestClients(t, s))
		checkInvariants(t, s)
	})
}

func TestExpireEndsASessionAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		a.mustCall(wire.OpCreate, createRequest("/e", "", wire.FlagEphemeral))
		require.NoError(t, s.Expire(a.session))
		a.waitForClose()
		_, found := s.Node("/e")
		require.False(t, found)
		require.ErrorContains(t, s.Expire(a.session), sessionName(a.session))
	})
}

func TestFrozenServerAnswersAfterThaw(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 20*time.Second)
		s.Freeze()
		start := time.Now()
		time.AfterFunc(7*time.Second, s.Thaw)
		a.mustCall(wire.OpCreate, createRequest("/a", "", 0))
		require.Equal(t, 7*time.Second, time.Since(start))
	})
}

func TestFrozenServerAcceptsWithoutAnswering(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		s.Freeze()
		start := time.Now()
		time.AfterFunc(time.Minute, s.Thaw)
		st.joinClient("late")
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// TestOverdueSessionsExpireFirstAfterAThaw: a real server does the same after SIGSTOP and SIGCONT,
// if a ping waits.
func TestOverdueSessionsExpireFirstAfterAThaw(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 4*time.Second)
		b := st.joinFor("b", 10*time.Second)
		s.Freeze()
		time.Sleep(3 * time.Second)
		a.send(wire.OpPing, &wire.EmptyRequest{})
		b.send(wire.OpPing, &wire.EmptyRequest{})
		time.Sleep(3 * time.Second)
		require.Len(t, s.Sessions(), 2, "timers stand still")
		s.Thaw()
		a.waitForClose()
		_, _ = b.await()
		require.Len(t, s.Sessions(), 1)
	})
}

func TestContainerCheckMissedInAFreezeRunsAtThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{ContainerInterval: time.Minute, ExtendedTypes: true})
		a := newTestClients(t, s).joinFor("a", 40*time.Second)
		a.mustCall(wire.OpCreateTTL, createTTL("/ttl", wire.FlagTTL, 1))
		s.Freeze()
		time.Sleep(90 * time.Second)
		require.Len(t, s.Tree("/ttl"), 1)
		s.Thaw()
		require.Empty(t, s.Tree("/ttl"))
	})
}

func TestCloseEndsAFrozenServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		s.Freeze()
		a.send(wire.OpPing, &wire.EmptyRequest{})
		s.Close()
		a.waitForClose()
		s.Thaw() // the server stays closed
	})
}

func TestRestartKeepsNodesSessionsAndZxid(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 10*time.Second)
		b := st.joinFor("b", 10*time.Second)
		a.mustCall(wire.OpCreate, createRequest("/e", "", wire.FlagEphemeral))
		b.mustCall(wire.OpExists, watchRequest("/e"))
		before := s.Zxid()
		time.Sleep(9 * time.Second)
		s.Restart()
		restarted := time.Now()
		a.waitForClose()
		b.waitForClose()
		require.Equal(t, before, s.Zxid())
		require.Empty(t, s.Watches())
		require.Zero(t, s.Connections())
		a2 := st.client("a2")
		require.True(t, a2.open(wire.ConnectRequest{Timeout: 10000, Session: a.session, Password: a.password,
			LastZxid: before}))
		time.Sleep(5 * time.Second)
		a2.mustCall(wire.OpExists, readRequest("/e"))
		time.Sleep(5*time.Second - time.Nanosecond)
		require.Len(t, s.Sessions(), 2, "b has its full timeout again")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, s.Sessions(), 1)
		require.Equal(t, 10*time.Second, time.Since(restarted))
	})
}

func TestRestartThaws(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		s.Freeze()
		s.Restart()
		st.joinClient("a").mustCall(wire.OpPing, &wire.EmptyRequest{})
	})
}

func TestSkewedClockStampsNodesAndExpiresTTLNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 10*time.Second)
		s.Skew(-time.Hour)
		a.mustCall(wire.OpCreate, createRequest("/a", "", 0))
		n, _ := s.Node("/a")
		require.Equal(t, time.Now().Add(-time.Hour).UnixMilli(), n.Stat.Mtime)
		a.mustCall(wire.OpCreateTTL, createTTL("/ttl", wire.FlagTTL, 1000))
		s.Reap()
		require.Len(t, s.Tree("/ttl"), 1)
		s.Skew(0)
		s.Reap()
		require.Empty(t, s.Tree("/ttl"), "it is an hour old by the right clock")
		time.Sleep(9 * time.Second)
		a.mustCall(wire.OpPing, &wire.EmptyRequest{})
	})
}

// A follower that applies a change ends the watch that it has by then, also one that was set in
// place of an earlier one after the change was committed.
func TestAnEventThatWaitsForALaggingServerEndsLaterWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		b.mustCall(wire.OpCreate, createRequest("/n", "", 0))
		watch := func() {
			head, _ := a.call(wire.OpExists, &wire.WatchRequest{Path: "/item", Watch: true})
			require.Equal(t, wire.NoNode, head.Err)
			d := a.mustCall(wire.OpGetChildren, &wire.WatchRequest{Path: "/n", Watch: true})
			require.Empty(t, d.Strings())
		}
		catchUp, err := s.Lag(a.session)
		require.NoError(t, err)
		watch()
		for _, path := range []string{"/item", "/n/child"} {
			b.mustCall(wire.OpCreate, createRequest(path, "", 0))
			b.mustCall(wire.OpDelete, &wire.NumberRequest{Path: path, Number: -1})
		}
		watch()
		require.Empty(t, s.Watches())
		catchUp()
		for _, e := range []wire.WatchEvent{
			{Type: wire.EventNodeCreated, Path: "/item"}, {Type: wire.EventNodeChildrenChanged, Path: "/n"},
		} {
			require.Equal(t, e, a.event())
		}
		require.Empty(t, s.Watches())
	})
}

func TestLaggingServerAnswersFromItsState(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		b.mustCall(wire.OpCreate, createRequest("/n", "1", 0))
		b.mustCall(wire.OpCreate, createRequest("/gone", "", 0))
		read := func(path string) string {
			head, d := a.call(wire.OpGetData, &wire.WatchRequest{Path: path, Watch: true})
			if head.Err != wire.OK {
				return head.Err.String()
			}
			return string(d.Buffer())
		}
		catchUp, err := s.Lag(a.session)
		require.NoError(t, err)
		before, _ := a.call(wire.OpPing, &wire.EmptyRequest{})
		b.mustCall(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("2"), Version: -1})
		b.mustCall(wire.OpDelete, &wire.NumberRequest{Path: "/gone", Number: -1})
		b.mustCall(wire.OpCreate, createRequest("/n/child", "", 0))
		require.Equal(t, "1", read("/n"))
		require.Empty(t, read("/gone"))
		d := a.mustCall(wire.OpGetChildren, &wire.WatchRequest{Path: "/n", Watch: true})
		require.Empty(t, d.Strings())
		after, _ := a.call(wire.OpPing, &wire.EmptyRequest{})
		require.Equal(t, before.Zxid, after.Zxid)

		a.send(wire.OpSync, &wire.PathRequest{Path: "/"})
		for _, e := range []wire.WatchEvent{
			{Type: wire.EventNodeDataChanged, Path: "/n"}, {Type: wire.EventNodeDeleted, Path: "/gone"},
			{Type: wire.EventNodeChildrenChanged, Path: "/n"},
		} {
			require.Equal(t, e, a.event())
		}
		synced, _ := a.await()
		require.Greater(t, synced.Zxid, before.Zxid)
		require.Equal(t, "2", read("/n"))
		b.mustCall(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("3"), Version: -1})
		require.Equal(t, "2", read("/n"), "the server lags behind again")
		catchUp()
		require.Equal(t, "3", read("/n"))
		b.mustCall(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("4"), Version: -1})
		require.Equal(t, "4", read("/n"))
		_, err = s.Lag(12345)
		require.Error(t, err)
	})
}

func TestALeaderThatLagsAnswersASyncFromItsState(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		b.mustCall(wire.OpCreate, createRequest("/n", "1", 0))
		read := func() string {
			d := a.mustCall(wire.OpGetData, &wire.WatchRequest{Path: "/n"})
			return string(d.Buffer())
		}
		catchUp, err := s.LagAsLeader(a.session)
		require.NoError(t, err)
		for _, value := range []string{"2", "3"} {
			before := read()
			b.mustCall(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte(value), Version: -1})
			head, _ := a.call(wire.OpSync, &wire.PathRequest{Path: "/n"})
			require.Equal(t, wire.OK, head.Err)
			require.Equal(t, before, read())
			head, _ = a.call(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest("/n", -1))))
			require.Equal(t, wire.OK, head.Err)
			require.Equal(t, value, read())
		}
		b.mustCall(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("4"), Version: -1})
		require.Equal(t, "3", read(), "the server lags behind again")
		s.Throttle(1, Match{Op: wire.OpMulti})
		head, _ := a.call(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest("/n", -1))))
		require.Equal(t, wire.ThrottledOp, head.Err)
		require.Equal(t, "3", read(), "a throttled transaction was not run")
		catchUp()
		require.Equal(t, "4", read())
	})
}
