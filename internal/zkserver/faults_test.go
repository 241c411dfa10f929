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

func TestDropReplyStrikesTheNthMatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a, b := st.join("a"), st.join("b")
		f := s.DropReply(2, Match{Op: wire.OpCreate, Path: "/x"})
		a.must(wire.OpCreate, create("/y1", "", 0))
		a.must(wire.OpCreate, create("/x1", "", 0))
		b.must(wire.OpGetData, look("/x1"))
		a.send(wire.OpCreate, create("/x2", "", 0))
		a.gone()
		<-f.Hit()
		b.must(wire.OpGetData, look("/x2"))
		b.must(wire.OpCreate, create("/x3", "", 0))
		require.Len(t, s.Sessions(), 2, "only the connection is gone")
	})
}

func TestDropReplyMatchesSessionFunctionAndParts(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a, b := st.join("a"), st.join("b")
		f := s.DropReply(1, Match{Session: b.session, Path: "/in", Func: func(r Request) bool {
			return r.Op == wire.OpMulti && len(r.Parts) == 2 && r.Parts[1].Result == "/inside"
		}})
		a.must(wire.OpMulti, parts(part(wire.OpCheck, num("/", -1)), part(wire.OpCreate, create("/inside", "", 0))))
		a.must(wire.OpDelete, num("/inside", -1))
		b.must(wire.OpMulti, parts(part(wire.OpCreate, create("/inside", "", 0)), part(wire.OpDelete, num("/inside", -1))))
		b.send(wire.OpMulti, parts(part(wire.OpCheck, num("/", -1)), part(wire.OpCreate, create("/inside", "", 0))))
		b.gone()
		<-f.Hit()
	})
}

func TestEarlierAnswersArriveBeforeTheCut(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a := st.join("a")
		s.DropReply(1, Match{Op: wire.OpDelete})
		go func() {
			a.send(wire.OpCreate, create("/a", "", 0))
			a.send(wire.OpDelete, num("/a", -1))
		}()
		head, _ := a.await()
		require.Equal(t, wire.OK, head.Err)
		a.gone()
	})
}

func TestCancelledFaultsDoNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a := st.join("a")
		f := s.DropReply(1, Match{})
		f.Cancel()
		f.Cancel()
		a.must(wire.OpPing, &wire.EmptyRequest{})
		select {
		case <-f.Hit():
			t.Fatal("a cancelled fault has struck")
		default:
		}
	})
}

func TestDelayedRepliesKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a, b := st.join("a"), st.join("b")
		f := s.DelayReplies(2*time.Second, Match{Op: wire.OpGetData})
		start := time.Now()
		go func() {
			a.send(wire.OpGetData, look("/"))
			a.send(wire.OpPing, &wire.EmptyRequest{})
		}()
		head, _ := a.await()
		require.Equal(t, int32(1), head.Xid)
		require.Equal(t, 2*time.Second, time.Since(start))
		head, _ = a.await()
		require.Equal(t, wire.XidPing, head.Xid)
		require.Equal(t, 2*time.Second, time.Since(start))
		b.must(wire.OpPing, &wire.EmptyRequest{})
		<-f.Hit()
		f.Cancel()
		a.must(wire.OpGetData, look("/"))
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestDelayedRepliesWaitForAThaw(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a := st.join("a")
		s.DelayReplies(time.Second, Match{Op: wire.OpGetData})
		start := time.Now()
		a.send(wire.OpGetData, look("/"))
		synctest.Wait()
		s.Freeze()
		time.AfterFunc(5*time.Second, s.Thaw)
		a.await()
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestObserveSeesAllInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, st *stage) {
		a := st.join("a")
		var seen []Request
		stop := s.Observe(func(r Request) {
			r.Data, r.Parts = bytes.Clone(r.Data), slices.Clone(r.Parts)
			for i, p := range r.Parts {
				r.Parts[i].Data = bytes.Clone(p.Data)
			}
			seen = append(seen, r)
		})
		a.must(wire.OpCreate, create("/s-", "single", wire.FlagSequential))
		a.call(wire.OpDelete, num("/none", -1))
		a.must(wire.OpMulti, parts(part(wire.OpCreate2, create("/m", "created", 0)), part(wire.OpSetData, set("/none", "refused", 0))))
		a.must(wire.OpGetData, look("/s-0000000000"))
		stop()
		a.must(wire.OpPing, &wire.EmptyRequest{})

		id, base := a.session, seen[0].Zxid
		require.Equal(t, []Request{
			{Session: id, Op: wire.OpCreate, Path: "/s-", Data: []byte("single"), Result: "/s-0000000000", Zxid: base},
			{Session: id, Op: wire.OpDelete, Path: "/none", Zxid: base + 1, Err: wire.NoNode},
			{Session: id, Op: wire.OpMulti, Zxid: base + 2, Parts: []Request{
				{Session: id, Op: wire.OpCreate2, Path: "/m", Data: []byte("created"), Result: "/m", Zxid: base + 2},
				{Session: id, Op: wire.OpSetData, Path: "/none", Data: []byte("refused"), Zxid: base + 2, Err: wire.NoNode},
			}},
			{Session: id, Op: wire.OpGetData, Path: "/s-0000000000", Zxid: base + 2},
		}, seen)
	})
}
