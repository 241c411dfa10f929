package link

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// FuzzHandshake feeds a server's bytes to what looks at the connect request's answer.
func FuzzHandshake(f *testing.F) {
	f.Add(welcome(1, 4000))
	f.Add([]byte("HTTP/1.1 200 OK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		br := bufio.NewReaderSize(bytes.NewReader(b), readBuffer)
		size, err := peekSize(br, false)
		if err != nil {
			return
		}
		require.LessOrEqual(t, size, readBuffer-sizeLen)
		m := New(Config{Now: func() time.Duration { return 0 },
			HandshakeTimeout: func() time.Duration { return time.Second }})
		defer m.Close()
		c := newConn(m, m.cfg, said{Reader: bytes.NewReader(b)}, "server:1")
		defer c.endOnce(nil)
		err = c.readConnectResponse(size)
		require.True(t, err != nil || len(m.Status().Handshake.Password) <= size)
	})
}

// said is a connection on which the peer has said something and hung up.
type said struct {
	io.Reader
	net.Conn
}

func (s said) Read(b []byte) (int, error)      { return s.Reader.Read(b) }
func (said) Write(b []byte) (int, error)       { return len(b), nil }
func (said) Close() error                      { return nil }
func (said) SetReadDeadline(_ time.Time) error { return nil }

// FuzzAnswers feeds a server's bytes to an established connection on which two requests are under
// way. Each is answered once, whatever comes, and the library gets no answer of theirs.
func FuzzAnswers(f *testing.F) {
	f.Add(append(reply(firstXid, 7), reply(firstXid+1, 8)...))
	f.Add(append(notification(wire.EventNodeDeleted, "/event"), reply(firstXid+1, 8)...))
	f.Add(frame(int32(firstXid+9), int64(1), int32(-101)))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte("HTTP/1.1 200 OK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(Config{Now: func() time.Duration { return 0 },
			HandshakeTimeout: func() time.Duration { return time.Second }, Event: func(wire.WatchEvent) {}})
		defer m.Close()
		c := newConn(m, m.cfg, said{Reader: bytes.NewReader(b)}, "server:1")
		c.handshakeDone.Store(true)
		answered := [2]int{}
		calls := []*Call{}
		for i := range answered {
			calls = append(calls, &Call{Op: wire.OpSync, Body: &wire.PathRequest{Path: "/"},
				Done: func(Reply) { answered[i]++ }})
		}
		require.NoError(t, c.queueCalls(calls, false))
		seen, err := io.ReadAll(c)
		require.True(t, err != nil || len(seen) == 0 || len(seen) <= len(b))
		c.endOnce(nil)
		require.Equal(t, [2]int{1, 1}, answered)
	})
}

func FuzzRequests(f *testing.F) {
	f.Add(hello(3))
	f.Fuzz(func(t *testing.T, b []byte) {
		var request wire.ConnectRequest
		if request.DecodeFrame(b) == nil {
			var o outbox
			o.putConnectRequest(&request)
			require.LessOrEqual(t, len(o.takeChunk().frames.Bytes()), len(b))
		}
	})
}
