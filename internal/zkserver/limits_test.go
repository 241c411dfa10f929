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

// closeSizeOf is the size of the transaction that would close the client's session.
func closeSizeOf(s *Server, a *raw) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.closeSize(s.db.sessions.byID[a.session])
}

// holding is a session whose close has so many bytes.
func holding(t *testing.T, s *Server, st *stage, size int) *raw {
	t.Helper()
	a := st.joinFor("a", 0)
	for left := size - closeOverhead; left > 0; {
		node := min(left, 400)
		left -= node
		a.must(wire.OpCreate, create("/"+strings.Repeat("x", node-pathOverhead-1-10), "", wire.FlagEphemeralSequential))
	}
	require.Equal(t, size, closeSizeOf(s, a))
	return a
}

func TestCloseSizeBySizeOfPaths(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a := st.join("a")
		require.Equal(t, 48, closeSizeOf(s, a))
		a.must(wire.OpCreate, create("/é", "data", wire.FlagEphemeral))
		a.must(wire.OpCreate, create("/n-", "", wire.FlagEphemeralSequential))
		a.must(wire.OpCreate, create("/persistent", "", 0))
		require.Equal(t, 48+4+3+4+13, closeSizeOf(s, a))
		a.must(wire.OpDelete, num("/é", -1))
		require.Equal(t, 48+4+13, closeSizeOf(s, a))
	})
}

// TestASessionTooLargeEndsTheServer comes to the same whoever ends the session.
func TestASessionTooLargeEndsTheServer(t *testing.T) {
	for name, end := range map[string]func(*Server, *raw){
		"closed":  func(_ *Server, a *raw) { a.send(wire.OpCloseSession, &wire.EmptyRequest{}) },
		"expired": func(*Server, *raw) { time.Sleep(time.Hour) },
		"frozen": func(s *Server, _ *raw) {
			s.Freeze()
			time.Sleep(time.Hour)
			s.Thaw()
		},
		"by a test": func(s *Server, a *raw) { _ = s.Expire(a.session) },
		"restarted": func(s *Server, a *raw) {
			a.send(wire.OpCloseSession, &wire.EmptyRequest{})
			synctest.Wait()
			s.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := startServer(t, Config{JuteMaxBuffer: 1000, Tick: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				st := newStage(t, s)
				b := st.joinFor("b", 20*time.Second)
				b.must(wire.OpCreateContainer, create("/container", "", wire.FlagContainer))
				b.must(wire.OpCreate, create("/container/kid", "", 0))
				b.must(wire.OpDelete, num("/container/kid", -1))
				a := holding(t, s, st, 1800)
				other := holding(t, s, st, 2000)
				require.NoError(t, s.Failure())
				other.must(wire.OpCloseSession, &wire.EmptyRequest{})

				a.must(wire.OpCreate, create("/"+strings.Repeat("y", 200), "", wire.FlagEphemeral))
				end(s, a)
				synctest.Wait()
				a.gone()
				b.gone()
				require.ErrorIs(t, s.Failure(), ErrSessionTooLarge)
				require.ErrorContains(t, s.Failure(), "6 nodes, a transaction of 2005 bytes where 2000 is the limit")
				require.Contains(t, log.String(), "ZOOKEEPER-4306")
				require.Error(t, s.Expire(b.session), "nothing is served any more, so nothing expires")

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

func TestJuteMaxBufferBoundsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{JuteMaxBuffer: 200})
		st := newStage(t, s)
		a := st.join("a")
		a.must(wire.OpCreate, create("/a", strings.Repeat("x", 100), 0))
		go func() { _, _ = a.nc.Write(binary.BigEndian.AppendUint32(nil, 201)) }()
		a.gone()
		again := st.client("again")
		require.True(t, again.open(wire.ConnectRequest{Timeout: 4000, Session: a.session, Password: a.password}), "the session lives on")
	})
}

func TestConnectionsOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{MaxClientCnxns: 2})
		st := newStage(t, s)
		a := st.join("a")
		st.join("b")
		for range 3 {
			nc := st.dial()
			_, err := nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
		require.Equal(t, 2, s.Connections())
		a.must(wire.OpCloseSession, &wire.EmptyRequest{})
		synctest.Wait()
		st.join("c")
	})
}

func TestTTLNodesNeedTheSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{})
		a := newStage(t, s).join("a")
		head, _ := a.call(wire.OpCreateTTL, createTTL("/ttl", wire.FlagTTL, 1000))
		require.Equal(t, wire.Unimplemented, head.Err)
		a.must(wire.OpCreateContainer, create("/container", "", wire.FlagContainer))
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
			require.Equal(t, strings.Contains(c.answers, word), s.commands.allows(word), "%v %s", c.list, word)
		}
	}
}

// TestStmkWaitsForItsArgument cannot be kept waiting for ever, and an end instead of the argument changes nothing.
func TestStmkWaitsForItsArgument(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		ask := func(parts ...string) string {
			nc := st.dial()
			go func() {
				for _, part := range parts {
					time.Sleep(time.Second)
					_, _ = nc.Write([]byte(part))
				}
			}()
			answer, err := io.ReadAll(nc)
			require.NoError(t, err)
			return string(answer)
		}
		require.Equal(t, "258", ask("stmk", "\x00\x00\x00\x00", "\x00\x00\x01\x02"))
		require.Equal(t, "258", ask("gtmk"))
		require.Empty(t, ask("stmk", "\x00"), "until the time for a handshake is over")
		require.Equal(t, "258", ask("gtmk"))
	})
}
