package zkserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// closeSizeOf returns the size of the transaction that would close the client's session.
func closeSizeOf(s *Server, a *rawClient) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.closeSize(s.db.sessions.byID[a.session])
}

// sessionOfSize returns a client with a session. The transaction that closes this session has size
// bytes.
func sessionOfSize(t *testing.T, s *Server, st *testClients, size int) *rawClient {
	t.Helper()
	a := st.joinFor("a", 0)
	for left := size - closeOverhead; left > 0; {
		node := min(left, 400)
		left -= node
		a.mustCall(wire.OpCreate,
			createRequest("/"+strings.Repeat("x", node-pathOverhead-1-10), "", wire.FlagEphemeralSequential))
	}
	require.Equal(t, size, closeSizeOf(s, a))
	return a
}

func TestCloseSizeBySizeOfPaths(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		require.Equal(t, 48, closeSizeOf(s, a))
		a.mustCall(wire.OpCreate, createRequest("/é", "data", wire.FlagEphemeral))
		a.mustCall(wire.OpCreate, createRequest("/n-", "", wire.FlagEphemeralSequential))
		a.mustCall(wire.OpCreate, createRequest("/persistent", "", 0))
		require.Equal(t, 48+4+3+4+13, closeSizeOf(s, a))
		a.mustCall(wire.OpDelete, numberRequest("/é", -1))
		require.Equal(t, 48+4+13, closeSizeOf(s, a))
	})
}

// TestSessionTooLargeFailsTheServer: each way to end such a session makes the server fail.
func TestSessionTooLargeFailsTheServer(t *testing.T) {
	for name, end := range map[string]func(*Server, *rawClient){
		"closed":  func(_ *Server, a *rawClient) { a.send(wire.OpCloseSession, &wire.EmptyRequest{}) },
		"expired": func(*Server, *rawClient) { time.Sleep(time.Hour) },
		"frozen": func(s *Server, _ *rawClient) {
			s.Freeze()
			time.Sleep(time.Hour)
			s.Thaw()
		},
		"by a test": func(s *Server, a *rawClient) { _ = s.Expire(a.session) },
		"restarted": func(s *Server, a *rawClient) {
			a.send(wire.OpCloseSession, &wire.EmptyRequest{})
			synctest.Wait()
			s.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := startServer(t, Config{JuteMaxBuffer: 1000, Tick: time.Second,
					Logger: slog.New(slog.NewTextHandler(&log, nil))})
				st := newTestClients(t, s)
				b := st.joinFor("b", 20*time.Second)
				b.mustCall(wire.OpCreateContainer, createRequest("/container", "", wire.FlagContainer))
				b.mustCall(wire.OpCreate, createRequest("/container/kid", "", 0))
				b.mustCall(wire.OpDelete, numberRequest("/container/kid", -1))
				a := sessionOfSize(t, s, st, 1800)
				other := sessionOfSize(t, s, st, 2000)
				require.NoError(t, s.Failure())
				other.mustCall(wire.OpCloseSession, &wire.EmptyRequest{})

				a.mustCall(wire.OpCreate, createRequest("/"+strings.Repeat("y", 200), "", wire.FlagEphemeral))
				end(s, a)
				synctest.Wait()
				a.waitForClose()
				b.waitForClose()
				require.ErrorIs(t, s.Failure(), ErrSessionTooLarge)
				require.ErrorContains(t, s.Failure(), "6 nodes, a transaction of 2005 bytes where 2000 is the limit")
				require.Contains(t, log.String(), "ZOOKEEPER-4306")
				require.Error(t, s.Expire(b.session), "a failed server ends no sessions")

				before := s.Tree("/")
				time.Sleep(time.Hour)
				s.Reap()
				require.Equal(t, before, s.Tree("/"))
				late := st.client("late")
				require.False(t, late.open(wire.ConnectRequest{Timeout: 4000}))
				require.Zero(t, s.Connections())
			})
		})
	}
}

func TestJuteMaxBufferLimitsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{JuteMaxBuffer: 200})
		st := newTestClients(t, s)
		a := st.joinClient("a")
		a.mustCall(wire.OpCreate, createRequest("/a", strings.Repeat("x", 100), 0))
		go func() { _, _ = a.nc.Write(binary.BigEndian.AppendUint32(nil, 201)) }()
		a.waitForClose()
		again := st.client("again")
		require.True(t, again.open(wire.ConnectRequest{Timeout: 4000, Session: a.session, Password: a.password}),
			"the session goes on")
	})
}

func TestMaxClientCnxns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{MaxClientCnxns: 2})
		st := newTestClients(t, s)
		a := st.joinClient("a")
		st.joinClient("b")
		for range 3 {
			nc := st.dial()
			_, err := nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
		require.Equal(t, 2, s.Connections())
		a.mustCall(wire.OpCloseSession, &wire.EmptyRequest{})
		synctest.Wait()
		st.joinClient("c")
	})
}

func TestTTLNodesNeedTheSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{})
		a := newTestClients(t, s).joinClient("a")
		head, _ := a.call(wire.OpCreateTTL, createTTL("/ttl", wire.FlagTTL, 1000))
		require.Equal(t, wire.Unimplemented, head.Err)
		a.mustCall(wire.OpCreateContainer, createRequest("/container", "", wire.FlagContainer))
	})
}

func TestFourLetterWordsOfTheWhitelist(t *testing.T) {
	for _, c := range []struct {
		list    []string
		answers string
	}{
		{nil, "ruok srvr stat"},
		{[]string{}, "srvr"},
		{[]string{"ruok"}, "ruok srvr"},
		{[]string{"isro", "*"}, "ruok srvr stat"},
	} {
		s := startServer(t, Config{FourLetterWords: c.list})
		for _, word := range []string{"ruok", "srvr", "stat"} {
			require.Equal(t, strings.Contains(c.answers, word), s.commands.allowsWord(word), "%v %s", c.list, word)
		}
	}
}

// TestStmkNeedsItsArgument: the server reads only what has come with the word. Without the whole
// argument it closes the connection at once, and the mask does not change.
func TestStmkNeedsItsArgument(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		ask := func(bytes string) string {
			nc := st.dial()
			_, err := nc.Write([]byte(bytes))
			require.NoError(t, err)
			answer, err := io.ReadAll(nc)
			require.NoError(t, err)
			return string(answer)
		}
		require.Equal(t, "258", ask("stmk\x00\x00\x00\x00\x00\x00\x01\x02"))
		start := time.Now()
		require.Empty(t, ask("stmk"))
		require.Empty(t, ask("stmk\x00\x00\x00\x00\x00\x00\x01"))
		require.Zero(t, time.Since(start))
		require.Equal(t, "258", ask("gtmk"))
	})
}
