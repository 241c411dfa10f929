package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// peer is the server's end of a connection: it takes everything that is written, but for while it
// is stalled, and answers when the test says so.
type peer struct {
	net.Conn // the end that the answers are written to
	t        *testing.T

	mu      sync.Mutex
	cond    sync.Cond
	stalled bool
	closed  bool
	least   int // bytes that the next write takes before it fails, if not 0
	got     []byte
	writes  int
}

func newPeer(t *testing.T) (net.Conn, *peer) {
	near, far := net.Pipe()
	p := &peer{Conn: far, t: t}
	p.cond.L = &p.mu
	return client{near, p}, p
}

// client is the other end.
type client struct {
	net.Conn
	p *peer
}

func (c client) Write(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for c.p.stalled {
		c.p.cond.Wait()
	}
	if c.p.closed {
		return 0, net.ErrClosed
	}
	if n := c.p.least; n > 0 {
		return n, io.ErrShortWrite
	}
	c.p.got = append(c.p.got, b...)
	c.p.writes++
	return len(b), nil
}

func (c client) Close() error {
	c.p.mu.Lock()
	c.p.stalled, c.p.closed = false, true // at once: a write that is stalled fails
	c.p.cond.Broadcast()
	c.p.mu.Unlock()
	return c.Conn.Close()
}

func (p *peer) stall(on bool) {
	p.mu.Lock()
	p.stalled = on
	p.cond.Broadcast()
	p.mu.Unlock()
}

// breakAfter lets the next write fail after so many bytes.
func (p *peer) breakAfter(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.least = bytes
}

// taken returns what has been written since the last call, and in how many writes.
func (p *peer) taken() ([]byte, int) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	b, n := p.got, p.writes
	p.got, p.writes = nil, 0
	return b, n
}

func (p *peer) expect(want []byte) {
	p.t.Helper()
	got, _ := p.taken()
	require.Equal(p.t, want, got)
}

func (p *peer) answer(b []byte) {
	go func() { _, _ = p.Conn.Write(b) }() // it may not be read to its end
}

func frame(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch v := p.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func hello(session int64) []byte {
	return frame(int32(0), int64(0), int32(10000), session, "0123456789abcdef")
}

func welcome(session int64, timeout int32) []byte {
	return frame(int32(0), timeout, session, "0123456789abcdef")
}

func create(xid int32, path string) []byte { return frame(xid, int32(wire.OpCreate), path) }

func reply(xid int32, zxid int64) []byte { return frame(xid, zxid, int32(0)) }

// network hands out connections; their other ends are in peers.
type network struct {
	t     *testing.T
	peers chan *peer
	err   error
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	if n.err != nil {
		return nil, n.err
	}
	c, p := newPeer(n.t)
	n.peers <- p
	return c, nil
}

type fixture struct {
	t      *testing.T
	m      *Transport
	net    *network
	failed map[string]error
	events []wire.WatchEvent
}

func in(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, net: &network{t: t, peers: make(chan *peer, 4)}, failed: map[string]error{}}
		began := time.Now()
		f.m = New(Config{
			Dial: f.net.dial, Now: func() time.Duration { return time.Since(began) },
			HandshakeTimeout: func() time.Duration { return 2 * time.Second },
			Failed:           func(a string, err error) { f.failed[a] = err },
			Event:            func(e wire.WatchEvent) { f.events = append(f.events, e) },
		})
		defer f.m.Close()
		test(t, f)
	})
}

// up dials and shakes hands as the library does.
func (f *fixture) up(asked, session int64, timeout int32) (net.Conn, *peer) {
	c, p := f.dial()
	_, err := c.Write(hello(asked))
	require.NoError(f.t, err)
	p.expect(hello(asked))
	p.answer(welcome(session, timeout))
	read(f.t, c, len(welcome(session, timeout)))
	return c, p
}

func (f *fixture) dial() (net.Conn, *peer) {
	c, err := f.m.Dial("tcp", "server:1", time.Second)
	require.NoError(f.t, err)
	return c, <-f.net.peers
}

// library is the client library's end of a connection.
type library struct {
	f *fixture
	net.Conn
}

// reads expects the library to read this and no more.
func (l library) reads(want []byte) {
	l.f.t.Helper()
	require.Equal(l.f.t, want, read(l.f.t, l, len(want)))
}

// readsNothing expects a read to end with the connection, which end ends.
func (l library) readsNothing(end func()) {
	l.f.t.Helper()
	got := make(chan error, 1)
	go func() {
		n, err := l.Read(make([]byte, 4))
		if err == nil {
			err = fmt.Errorf("%d bytes", n)
		}
		got <- err
	}()
	synctest.Wait()
	end()
	require.ErrorIs(l.f.t, <-got, io.ErrClosedPipe)
}

func read(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	return b
}

func TestHandshakeIsSeen(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		time.Sleep(5 * time.Second)
		f.up(0, 77, 4000)
		st := f.m.Status()
		require.NotNil(t, st.Connection)
		require.Equal(t, Handshake{SentAt: 5 * time.Second, SessionID: 77, Password: []byte("0123456789abcdef"),
			Timeout: 4 * time.Second, Server: "server:1"}, st.Handshake)
		<-f.m.Changed()
		st.Connection.Cut()
		<-f.m.Changed()
		require.Nil(t, f.m.Status().Connection)
		f.up(77, 77, 4000)
		st.Connection.Cut()
		require.True(t, f.m.Status().Connection.IsUp(), "another connection")
		require.Empty(t, f.failed)
	})
}

// TestAServerThatHangsUpAfterTheHandshakeHasFailed: the failure is known before the next dial,
// which pauses then. A server that has answered more, or has said that the session is over, has not
// failed.
func TestAServerThatHangsUpAfterTheHandshakeHasFailed(t *testing.T) {
	for name, server := range map[string]struct {
		session int64
		says    []byte
		failed  bool
	}{"at once": {77, nil, true}, "after an event": {77, notification(wire.EventNodeDeleted, "/e"), true},
		"after a pong": {77, pong(), false}, "expired": {0, nil, false}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *fixture) {
				c, p := f.up(0, server.session, 4000)
				ended := make(chan error, 1)
				go func() { _, err := io.ReadAll(c); ended <- err }()
				p.answer(server.says)
				synctest.Wait()
				p.Conn.Close()
				<-ended
				if server.failed {
					require.ErrorContains(t, f.failed["server:1"], "it answers, but not to a proof of life: ")
				} else {
					require.Empty(t, f.failed)
				}
			})
		})
	}
}

// TestNoSecondSession is what keeps calls of one session from running in another.
func TestNoSecondSession(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.up(0, 77, 4000)
		c.Close()
		c, p := f.dial()
		_, err := c.Write(hello(0))
		require.ErrorIs(t, err, ErrSessionOver)
		p.expect(nil)
		f.up(77, 77, 4000)
		require.NotNil(t, f.m.Status().Connection)
	})
}

// TestAnAnswerOfAnEndedConnectionDoesNotEstablishIt: the connection ends after its answer was read
// and before the Transport hears of the answer.
func TestAnAnswerOfAnEndedConnectionDoesNotEstablishIt(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.dial()
		_, err := c.Write(hello(0))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		f.m.handshakeAnswered(c.(*conn), false, Handshake{SessionID: 77, Timeout: 4 * time.Second})
		require.Equal(t, Status{}, f.m.Status())
	})
}

// TestAnAnswerForAnotherSessionIsRefused asks for session 77, and gets 78.
func TestAnAnswerForAnotherSessionIsRefused(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.up(0, 77, 4000)
		c.Close()
		before := f.m.Status().Handshake
		c, p := f.dial()
		_, err := c.Write(hello(77))
		require.NoError(t, err)
		p.answer(welcome(78, 4000))
		_, err = c.Read(make([]byte, sizeLen))
		require.EqualError(t, err,
			"link: an answer for session 0x4e to a request for session 0x4d: the peer does not speak "+
				"ZooKeeper's protocol")
		require.Equal(t, err, f.failed["server:1"])
		require.Equal(t, Status{Handshake: before}, f.m.Status())
	})
}

func TestAnExpiredSessionIsOver(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.up(0, 77, 4000)
		c.Close()
		f.up(77, 0, 0)
		require.True(t, f.m.Status().Expired)
		require.Nil(t, f.m.Status().Connection)
		require.True(t, f.m.Over())
		_, err := f.m.Dial("tcp", "server:1", time.Second)
		require.ErrorIs(t, err, ErrSessionOver)
	})
}

func TestASilentServerIsGivenUp(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, _ := f.dial()
		_, err := c.Write(hello(0))
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
		began := time.Now()
		_, err = c.Read(make([]byte, 4))
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, err, f.failed["server:1"])
	})
}

func TestFailedDialIsReported(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		f.net.err = errors.New("refused")
		_, err := f.m.Dial("tcp", "server:1", time.Second)
		require.ErrorIs(t, err, f.net.err)
		require.ErrorIs(t, f.failed["server:1"], f.net.err)
	})
}

// TestQueuedWritesAreSentTogether stalls the network while 50 requests are written.
func TestQueuedWritesAreSentTogether(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		var want []byte
		for i := range int32(50) {
			want = append(want, create(i, "/x")...)
		}
		_, err := c.Write(want[:len(create(0, "/x"))])
		require.NoError(t, err)
		_, writes := p.taken()
		require.Equal(t, 1, writes, "a lone request is not kept waiting")
		p.stall(true)
		for i := range int32(50) {
			_, err := c.Write(create(i, "/x"))
			require.NoError(t, err)
		}
		p.stall(false)
		got, writes := p.taken()
		require.Equal(t, want, got, "in order, nothing twice")
		require.LessOrEqual(t, writes, 2)
	})
}

func TestGarbageEndsTheConnection(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"http": []byte("HTTP/1.1 400 Bad Request\r\n"), "huge": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"short":         frame(int32(1)),
		"long answer":   {0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"long password": {0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *fixture) {
				c, p := f.dial()
				_, err := c.Write(hello(0))
				require.NoError(t, err)
				require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
				p.answer(bytes)
				_, err = io.ReadAll(c)
				require.ErrorContains(t, err, "link: ")
				require.Nil(t, f.m.Status().Connection)
				require.Error(t, f.failed["server:1"])
			})
		})
	}
}

func TestACloseUnblocksADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{Now: func() time.Duration { return 0 },
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		done := make(chan error, 1)
		go func() { _, err := m.Dial("tcp", "server:1", time.Hour); done <- err }()
		synctest.Wait()
		m.Close()
		require.ErrorIs(t, <-done, context.Canceled)
		_, err := m.Dial("tcp", "server:1", time.Hour)
		require.ErrorIs(t, err, ErrClosed)
	})
}
