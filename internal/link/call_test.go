package link

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// answers collects the replies of calls, by path.
type answers map[string]Reply

var answering sync.Mutex // calls are answered by several goroutines

func (a answers) call(path string) *Call {
	return &Call{Op: wire.OpSync, Body: &wire.PathRequest{Path: path}, Done: func(r Reply) {
		answering.Lock()
		defer answering.Unlock()
		if _, twice := a[path]; twice {
			panic("answered twice: " + path)
		}
		r.Body = bytes.Clone(r.Body)
		a[path] = r
	}}
}

func syncing(xid int32, path string) []byte { return frame(xid, int32(wire.OpSync), path) }

// admitted is a connection that takes requests.
func (f *fixture) admitted(asked, session int64) (library, *peer) {
	c, p := f.up(asked, session, 4000)
	f.m.Status().Connection.Admit()
	return library{f, c}, p
}

// notification is a watch event as a server sends it.
func notification(event wire.EventType, path string) []byte {
	return frame(wire.XidNotify, int64(-1), int32(0), int32(event), int32(3), path)
}

// TestAnswersGoToTheirCalls mixes the answers to two calls with watch events, and with what the
// library gets to see.
func TestAnswersGoToTheirCalls(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.admitted(0, 77)
		got := answers{}
		require.True(t, f.m.Send(got.call("/a"), got.call("/b")))
		p.expect(append(syncing(firstXid, "/a"), syncing(firstXid+1, "/b")...))

		long, own := "/"+strings.Repeat("x", 1<<20), reply(3, 12)
		p.answer(bytes.Join([][]byte{
			notification(wire.EventNodeDeleted, "/e"), frame(int32(firstXid), int64(10), int32(0), "/a"),
			frame(int32(firstXid+7), int64(10), int32(0)),
			frame(int32(firstXid+1), int64(11), int32(wire.NoNode)), notification(wire.EventNodeCreated, long), own,
		}, nil))
		c.reads(own)
		require.Equal(t, []wire.WatchEvent{{Type: wire.EventNodeDeleted, State: 3, Path: "/e"},
			{Type: wire.EventNodeCreated, State: 3, Path: long}}, f.events)
		require.Equal(t, answers{
			"/a": {Zxid: 10, SessionID: 77, Body: []byte("\x00\x00\x00\x02/a")},
			"/b": {Zxid: 11, SessionID: 77, Code: wire.NoNode, Body: []byte{}},
		}, got)
	})
}

// TestABrokenEventEndsTheConnection: the next event might be one that a holder must hear.
func TestABrokenEventEndsTheConnection(t *testing.T) {
	for name, event := range map[string][]byte{
		"no body": frame(wire.XidNotify, int64(-1), int32(0)),
		"cut off": frame(wire.XidNotify, int64(-1), int32(0), int32(wire.EventNodeDeleted), int32(3), int32(1000)),
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *fixture) {
				c, p := f.admitted(0, 77)
				p.answer(event)
				_, err := c.Read(make([]byte, 1))
				require.ErrorIs(t, err, wire.ErrMalformed)
				require.Nil(t, f.m.Status().Connection)
				require.Empty(t, f.events)
			})
		})
	}
}

// TestNothingPassesWithoutCredentials sends before the connection is admitted.
func TestNothingPassesWithoutCredentials(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		got := answers{}
		require.False(t, f.m.Send(got.call("/none")), "not connected")
		_, p := f.up(0, 77, 4000)
		require.False(t, f.m.Send(got.call("/early")))
		require.True(t, f.m.Send(&Call{Op: wire.OpAuth, Body: &wire.AuthRequest{Scheme: "digest"},
			Done: func(Reply) {}}))
		(&Connection{transport: f.m, conn: &conn{}}).Admit()
		require.False(t, f.m.Send(got.call("/other")), "another connection is admitted")
		f.m.Status().Connection.Admit()
		_, _ = p.taken()
		require.True(t, f.m.Send(got.call("/late")))
		p.expect(syncing(firstXid+1, "/late"))
		require.Equal(t, answers{"/none": {Err: ErrNotSent}, "/early": {Err: ErrNotSent}, "/other": {Err: ErrNotSent}},
			got)
	})
}

// TestAnEndedConnectionAnswersItsCalls cuts a connection with calls under way, one of them half
// answered.
func TestAnEndedConnectionAnswersItsCalls(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.admitted(0, 77)
		got := answers{}
		require.True(t, f.m.Send(got.call("/a"), got.call("/b"), got.call("/c")))
		p.answer(append(frame(int32(firstXid), int64(10), int32(0)),
			frame(int32(firstXid+1), int64(11), int32(0), "/b")[:24]...))
		c.readsNothing(func() { f.m.Status().Connection.Cut() })
		require.False(t, f.m.Send(got.call("/d")))
		require.Equal(t, answers{
			"/a": {Zxid: 10, SessionID: 77, Body: []byte{}}, "/b": {SessionID: 77, Err: ErrDown},
			"/c": {SessionID: 77, Err: ErrDown}, "/d": {Err: ErrNotSent},
		}, got)
	})
}

// TestNextServerGetsLastZxid is what keeps a session from going back in time on a server that lags.
func TestNextServerGetsLastZxid(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.admitted(0, 77)
		require.True(t, f.m.Send(answers{}.call("/a")))
		p.answer(append(frame(int32(firstXid), int64(4711), int32(0)), reply(5, 4000)...))
		c.reads(reply(5, 4000))
		c.Close()
		again, q := f.dial()
		_, err := again.Write(hello(77))
		require.NoError(t, err)
		q.expect(frame(int32(0), int64(4711), int32(10000), int64(77), "0123456789abcdef"))
	})
}

// TestLongAnswers reads one that fills the buffer, one that is larger and one that is too large,
// and goes on.
func TestLongAnswers(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.admitted(0, 77)
		got := answers{}
		var all []byte
		for i, size := range []int{readBuffer - sizeLen - replyHead - 4, 10 * readBuffer, MaxAnswer} {
			path := string(rune('a' + i))
			require.True(t, f.m.Send(got.call(path)))
			all = append(all, frame(firstXid+int32(i), int64(10+i), int32(0), string(make([]byte, size)))...)
		}
		p.answer(append(all, reply(5, 20)...))
		c.reads(reply(5, 20))
		require.Len(t, got["a"].Body, readBuffer-sizeLen-replyHead)
		require.Len(t, got["b"].Body, 10*readBuffer+4)
		require.Equal(t, Reply{Zxid: 12, SessionID: 77, Err: ErrTooLong}, got["c"])
	})
}

// TestNumbersComeRound takes the last number, and those before and behind it.
func TestNumbersComeRound(t *testing.T) {
	m := New(Config{})
	defer m.Close()
	require.Equal(t, int32(firstXid), m.takeXid())
	require.Equal(t, int32(firstXid+1), m.takeXid())
	for _, turn := range []int32{firstXid - 1, 1<<31 - 1} { // the latter is the last that is counted
		m.xids.Store(turn)
		require.Equal(t, int32(1<<31-1), m.takeXid())
		require.Equal(t, int32(firstXid), m.takeXid())
	}
}

// TestNumbersGoOnOnTheNextConnection: the former server may still have a request under way.
func TestNumbersGoOnOnTheNextConnection(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		got := answers{}
		_, p := f.admitted(0, 77)
		require.True(t, f.m.Send(got.call("/a"), got.call("/b")))
		p.expect(append(syncing(firstXid, "/a"), syncing(firstXid+1, "/b")...))
		f.m.Status().Connection.Cut()
		synctest.Wait()
		require.ErrorIs(t, got["/b"].Err, ErrDown)
		_, p = f.admitted(77, 77)
		require.True(t, f.m.Send(got.call("/c")))
		p.expect(syncing(firstXid+2, "/c"))
	})
}
