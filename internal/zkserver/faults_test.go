package zkserver

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func TestDropReplyOfTheNthMatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		f := s.DropReply(2, Match{Op: wire.OpCreate, Path: "/x"})
		a.mustCall(wire.OpCreate, createRequest("/y1", "", 0))
		a.mustCall(wire.OpCreate, createRequest("/x1", "", 0))
		b.mustCall(wire.OpGetData, readRequest("/x1"))
		a.send(wire.OpCreate, createRequest("/x2", "", 0))
		a.waitForClose()
		<-f.Hit()
		b.mustCall(wire.OpGetData, readRequest("/x2"))
		b.mustCall(wire.OpCreate, createRequest("/x3", "", 0))
		require.Len(t, s.Sessions(), 2, "only the connection has ended")
	})
}

func TestDropReplyMatchesSessionFunctionAndParts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		f := s.DropReply(1, Match{Session: b.session, Path: "/in", Func: func(r Request) bool {
			return r.Op == wire.OpMulti && len(r.Parts) == 2 && r.Parts[1].Result == "/inside"
		}})
		a.mustCall(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest("/", -1)),
			multiPart(wire.OpCreate, createRequest("/inside", "", 0))))
		a.mustCall(wire.OpDelete, numberRequest("/inside", -1))
		b.mustCall(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest("/inside", "", 0)),
			multiPart(wire.OpDelete, numberRequest("/inside", -1))))
		b.send(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest("/", -1)),
			multiPart(wire.OpCreate, createRequest("/inside", "", 0))))
		b.waitForClose()
		<-f.Hit()
	})
}

func TestEarlierAnswersArriveBeforeTheCut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		s.DropReply(1, Match{Op: wire.OpDelete})
		go func() {
			a.send(wire.OpCreate, createRequest("/a", "", 0))
			a.send(wire.OpDelete, numberRequest("/a", -1))
		}()
		head, _ := a.await()
		require.Equal(t, wire.OK, head.Err)
		a.waitForClose()
	})
}

func TestCancelledFaultsHaveNoEffect(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		f := s.DropReply(1, Match{})
		f.Cancel()
		f.Cancel()
		a.mustCall(wire.OpPing, &wire.EmptyRequest{})
		select {
		case <-f.Hit():
			t.Fatal("a cancelled fault has had its effect")
		default:
		}
	})
}

func TestDelayedRepliesKeepTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a, b := st.joinClient("a"), st.joinClient("b")
		f := s.DelayReplies(2*time.Second, Match{Op: wire.OpGetData})
		start := time.Now()
		go func() {
			a.send(wire.OpGetData, readRequest("/"))
			a.send(wire.OpPing, &wire.EmptyRequest{})
		}()
		head, _ := a.await()
		require.Equal(t, int32(1), head.Xid)
		require.Equal(t, 2*time.Second, time.Since(start))
		head, _ = a.await()
		require.Equal(t, wire.XidPing, head.Xid)
		require.Equal(t, 2*time.Second, time.Since(start))
		b.mustCall(wire.OpPing, &wire.EmptyRequest{})
		<-f.Hit()
		f.Cancel()
		a.mustCall(wire.OpGetData, readRequest("/"))
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestDelayedRepliesWaitForAThaw(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		s.DelayReplies(time.Second, Match{Op: wire.OpGetData})
		start := time.Now()
		a.send(wire.OpGetData, readRequest("/"))
		synctest.Wait()
		s.Freeze()
		time.AfterFunc(5*time.Second, s.Thaw)
		a.await()
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

// TestDelayedRepliesOfAClosingConnection arrive after a thaw, and are lost with the connection at a
// restart.
func TestDelayedRepliesOfAClosingConnection(t *testing.T) {
	for name, restart := range map[string]bool{"thaw": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *Server, st *testClients) {
				a := st.joinClient("a")
				s.DelayReplies(time.Second, Match{Op: wire.OpGetData})
				start := time.Now()
				a.send(wire.OpGetData, readRequest("/"))
				a.send(wire.OpCloseSession, &wire.EmptyRequest{})
				synctest.Wait()
				s.Freeze()
				if restart {
					time.AfterFunc(5*time.Second, s.Restart)
				} else {
					time.AfterFunc(5*time.Second, s.Thaw)
					head, _ := a.await()
					require.Equal(t, int32(1), head.Xid)
					a.await()
				}
				_, err := a.frame()
				require.Error(t, err, "no further frame arrives")
				require.Equal(t, "closed", describeReadError(err))
				require.Equal(t, 5*time.Second, time.Since(start))
			})
		})
	}
}

// TestDelayedReplyBeforeADroppedOne arrives, also if it is delayed for longer than the last writes
// of a connection may take.
func TestDelayedReplyBeforeADroppedOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		delay := s.config.HandshakeTimeout + 5*time.Second
		s.DelayReplies(delay, Match{Op: wire.OpGetData})
		s.DropReply(1, Match{Op: wire.OpCreate})
		start := time.Now()
		a.send(wire.OpGetData, readRequest("/"))
		a.send(wire.OpCreate, createRequest("/a", "", 0))
		head, _ := a.await()
		require.Equal(t, int32(1), head.Xid)
		a.waitForClose()
		require.Equal(t, delay, time.Since(start))
	})
}

// TestDelayedReplyThatIsNotRead holds its closing connection open only as long as the last writes
// may take.
func TestDelayedReplyThatIsNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		delay := 2 * s.config.HandshakeTimeout
		s.DelayReplies(delay, Match{Op: wire.OpGetData})
		a.send(wire.OpGetData, readRequest("/"))
		a.send(wire.OpCloseSession, &wire.EmptyRequest{})
		open := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.connections.open) }
		time.Sleep(delay + s.config.HandshakeTimeout - time.Second)
		require.Equal(t, 1, open())
		time.Sleep(2 * time.Second)
		require.Zero(t, open())
	})
}

func TestObserveSeesAllInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		var seen []Request
		stop := s.Observe(func(r Request) {
			r.Data, r.Parts = bytes.Clone(r.Data), slices.Clone(r.Parts)
			for i, p := range r.Parts {
				r.Parts[i].Data = bytes.Clone(p.Data)
			}
			seen = append(seen, r)
		})
		a.mustCall(wire.OpCreate, createRequest("/s-", "single", wire.FlagSequential))
		a.call(wire.OpDelete, numberRequest("/none", -1))
		a.mustCall(wire.OpMulti, multiRequest(multiPart(wire.OpCreate2, createRequest("/m", "created", 0)),
			multiPart(wire.OpSetData, setDataRequest("/none", "refused", 0))))
		a.mustCall(wire.OpGetData, readRequest("/s-0000000000"))
		stop()
		a.mustCall(wire.OpPing, &wire.EmptyRequest{})

		id, base := a.session, seen[0].Zxid
		require.Equal(t, []Request{
			{Session: id, Op: wire.OpCreate, Path: "/s-", Data: []byte("single"), Result: "/s-0000000000", Zxid: base},
			{Session: id, Op: wire.OpDelete, Path: "/none", Zxid: base + 1, Err: wire.NoNode},
			{Session: id, Op: wire.OpMulti, Zxid: base + 2, Parts: []Request{
				{Session: id, Op: wire.OpCreate2, Path: "/m", Data: []byte("created"), Result: "/m", Zxid: base + 2},
				{Session: id, Op: wire.OpSetData, Path: "/none", Data: []byte("refused"), Zxid: base + 2,
					Err: wire.NoNode},
			}},
			{Session: id, Op: wire.OpGetData, Path: "/s-0000000000", Zxid: base + 2},
		}, seen)
	})
}
