package zkserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const mebibyte = 1 << 20

// patient has long timeouts, for tests that make thousands of sessions on a slow machine.
var patient = Config{MaxSessionTimeout: time.Hour, HandshakeTimeout: time.Hour}

// politeClient runs a client that sends valid requests while other clients misbehave. The returned
// function ends it, and requires that its requests have succeeded.
func politeClient(t *testing.T, s *Server) (done func()) {
	a := newTestClients(t, s).joinFor("citizen", time.Hour)
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		rounds := 0
		defer func() { ended <- rounds }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, op := range []wire.MultiPart{
				multiPart(wire.OpCreate, createRequest("/citizen", "x", wire.FlagEphemeral)),
				multiPart(wire.OpGetData, readRequest("/citizen")),
				multiPart(wire.OpDelete, numberRequest("/citizen", -1)),
			} {
				if head, _ := a.call(op.Op, op.Body); head.Err != wire.OK {
					rounds = -1
					return
				}
			}
			rounds++
		}
	}()
	return func() {
		close(stop)
		require.Positive(t, <-ended)
	}
}

// handshake returns the first frame of a client.
func handshake(timeout time.Duration) []byte {
	var e wire.Encoder
	mark := e.BeginFrame()
	(&wire.ConnectRequest{Timeout: int32(timeout.Milliseconds())}).Encode(&e)
	e.EndFrame(mark)
	return e.Bytes()
}

// frameOf returns the frame of a request. Its body may be any bytes.
func frameOf(op wire.Op, body []byte) []byte {
	var e wire.Encoder
	mark := e.BeginFrame()
	wire.RequestHeader{Xid: 1, Op: op}.Encode(&e)
	e.Raw(body)
	e.EndFrame(mark)
	return e.Bytes()
}

// encodedHandshake returns a connection with a session.
func encodedHandshake(t *testing.T, s *Server) net.Conn {
	nc := pipeTo(t, s)
	_, err := nc.Write(handshake(time.Hour))
	require.NoError(t, err)
	_, err = wire.ReadFrame(nc, nil, wire.MaxFrame)
	require.NoError(t, err)
	return nc
}

func TestInvalidFrameLengthEndsTheConnection(t *testing.T) {
	s := startServer(t, patient)
	done := politeClient(t, s)
	before := heapInUse()
	for _, length := range []uint32{math.MaxUint32, 1 << 31, math.MaxInt32, wire.MaxFrame + 1} {
		for _, dial := range []func(*testing.T, *Server) net.Conn{pipeTo, encodedHandshake} {
			nc := dial(t, s)
			_, err := nc.Write(binary.BigEndian.AppendUint32(nil, length))
			require.NoError(t, err)
			requireEnded(t, nc, length)
		}
	}
	nc := pipeTo(t, s)
	// allowed for a later frame, but not for the first
	_, _ = nc.Write(binary.BigEndian.AppendUint32(nil, maxHandshake+1))
	requireEnded(t, nc, maxHandshake+1)
	require.Less(t, heapInUse()-before, int64(4*mebibyte))
	done()
}

// requireEnded requires that the server has closed the connection. It does not wait for the
// server's timeouts.
func requireEnded(t *testing.T, nc net.Conn, about any) {
	_ = nc.SetReadDeadline(time.Now().Add(time.Minute)) // its error is not that of a closed pipe
	_, err := nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "%v", about)
	require.NoError(t, nc.Close())
}

// TestLengthsInsideRecords sends each kind of request with a length of two billion for a string, a
// buffer or a vector.
func TestLengthsInsideRecords(t *testing.T) {
	s := startServer(t, patient)
	done := politeClient(t, s)
	huge := binary.BigEndian.AppendUint32(nil, math.MaxInt32)
	before := heapInUse()
	for op := wire.Op(-12); op < 120; op++ {
		for _, prefix := range [][]byte{nil, {0, 0, 0, 1, '/'}, {0, 0, 0, 1, '/', 0, 0, 0, 0}, make([]byte, 8),
			make([]byte, 12)} {
			nc := encodedHandshake(t, s)
			go io.Copy(io.Discard, nc) // any answer
			_, _ = nc.Write(frameOf(op, append(prefix, huge...)))
			require.NoError(t, nc.Close())
		}
	}
	done()
	require.Less(t, heapInUse()-before, int64(32*mebibyte))
}

func TestHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{HandshakeTimeout: 10 * time.Second})
		start := time.Now()
		nc := pipeTo(t, s)
		var err error
		for _, b := range handshake(4 * time.Second) {
			if _, err = nc.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		require.Error(t, err, "a byte a second is too slow")
		require.LessOrEqual(t, time.Since(start), 11*time.Second)
		synctest.Wait()
		require.Zero(t, s.Connections())
		require.Empty(t, s.Sessions())
	})
}

func TestHalfAFrameDoesNotProlongTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinFor("a", 10*time.Second)
		a.write(frameOf(wire.OpCreate, make([]byte, 1000))[:500])
		time.Sleep(9 * time.Second)
		require.Equal(t, 1, s.Connections())
		time.Sleep(2 * time.Second)
		require.Zero(t, s.Connections())
		a.waitForClose()
	})
}

// crowd is how many connections come at once.
const crowd = 10_000

func TestTenThousandSessions(t *testing.T) {
	s := startServer(t, patient)
	before, goroutines := heapInUse(), runtime.NumGoroutine()
	done := politeClient(t, s)
	conns := make([]net.Conn, crowd)
	for i := range conns {
		conns[i] = encodedHandshake(t, s)
		go io.Copy(io.Discard, conns[i]) // until it is closed
		_, err := conns[i].Write(frameOf(wire.OpGetData, encoded(watchRequest("/"))))
		require.NoError(t, err)
	}
	require.Equal(t, crowd+1, s.Connections())
	require.Less(t, heapInUse()-before, int64(crowd*48<<10), "of both sides")
	done()
	for _, nc := range conns {
		require.NoError(t, nc.Close())
	}
	require.Eventually(t, func() bool { return s.Connections() == 1 }, time.Minute, time.Millisecond)
	require.Empty(t, s.Watches())
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+8 }, time.Minute, time.Millisecond)
	for _, info := range s.Sessions() {
		require.NoError(t, s.Expire(info.ID))
	}
	clear(conns)
	require.Less(t, heapInUse()-before, int64(32*mebibyte), "nothing is kept of them")
}

func encoded(body wire.Request) []byte {
	var e wire.Encoder
	body.Encode(&e)
	return e.Bytes()
}

// TestManyClientsOverTCP opens connections until no file descriptor is left, and tries one more.
// The polite client still gets its answers.
func TestManyClientsOverTCP(t *testing.T) {
	s := startServer(t, patient)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	done := politeClient(t, s)
	before := heapInUse()
	var conns []net.Conn
	for range crowd {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			break // there are no more descriptors
		}
		conns = append(conns, nc)
	}
	t.Logf("%d connections", len(conns))
	require.Greater(t, len(conns), 100)
	require.Less(t, heapInUse()-before, int64(crowd*48<<10))
	done()
	for _, nc := range conns {
		require.NoError(t, nc.Close())
	}
	require.Eventually(t, func() bool { return s.Connections() == 1 }, time.Minute, time.Millisecond)
	late, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer late.Close()
	_, err = late.Write([]byte("ruok"))
	require.NoError(t, err)
	answer, err := io.ReadAll(late)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer))
	require.NoError(t, ln.Close())
	require.Error(t, <-served, "its listener was closed")
}

// TestClientSendingWithoutReading: many clients request a large node again and again, and do not
// read the answers.
func TestClientSendingWithoutReading(t *testing.T) {
	const deaf = 50
	s := startServer(t, patient)
	newTestClients(t, s).joinFor("a", time.Hour).mustCall(wire.OpCreate,
		createRequest("/big", strings.Repeat("x", 500_000), 0))
	done := politeClient(t, s)
	before := heapInUse()
	var flood sync.WaitGroup
	var conns []net.Conn
	for range deaf {
		nc := encodedHandshake(t, s)
		conns = append(conns, nc)
		flood.Go(func() {
			_ = nc.SetWriteDeadline(time.Now().Add(2 * time.Second))
			for err := error(nil); err == nil; {
				_, err = nc.Write(frameOf(wire.OpGetData, encoded(readRequest("/big"))))
			}
		})
	}
	flood.Wait()
	require.Equal(t, deaf+2, s.Connections(), "the server stops to read their requests, and does not cut them off")
	require.Less(t, heapInUse()-before, int64(deaf*(outgoingPause+4*mebibyte)))
	done()
	for _, nc := range conns {
		require.NoError(t, nc.Close())
	}
}

// TestOversizedAnswerCutsTheConnection reads the same large node ten thousand times in one request.
func TestOversizedAnswerCutsTheConnection(t *testing.T) {
	config := patient
	config.OutgoingLimit = 4 * mebibyte
	s := startServer(t, config)
	st := newTestClients(t, s)
	a := st.joinFor("a", time.Hour)
	a.mustCall(wire.OpCreate, createRequest("/big", strings.Repeat("x", 500_000), 0))
	before := heapInUse()
	ask := func(reads int) *wire.MultiRequest {
		p := multiRequest()
		for range reads {
			p.Parts = append(p.Parts, multiPart(wire.OpGetData, readRequest("/big")))
		}
		return p
	}
	a.mustCall(wire.OpMultiRead, ask(7))
	b := st.joinFor("b", time.Hour)
	b.send(wire.OpMultiRead, ask(10_000))
	b.waitForClose()
	require.Less(t, heapInUse()-before, int64(32*mebibyte))
	a.mustCall(wire.OpMultiRead, ask(7))
}

func TestIdentitiesAreLimited(t *testing.T) {
	for _, c := range []struct {
		name, secret string
		most         int
	}{
		{"many", "x", maxIdentities},
		{"long", strings.Repeat("x", 300_000), 4},
	} {
		s := startServer(t, patient)
		st := newTestClients(t, s)
		a := st.joinFor("a", time.Hour)
		refused := 0
		for i := range 10 * maxIdentities {
			head, _ := a.call(wire.OpAuth, authRequest("digest", fmt.Sprintf("%s%d:x", c.secret, i)))
			if head.Err != wire.OK {
				require.Equal(t, wire.AuthFailed, head.Err)
				refused = i
				break
			}
		}
		require.Positive(t, refused, c.name)
		require.LessOrEqual(t, refused, c.most, c.name)
		a.waitForClose()
		st.joinFor("b", time.Hour).mustCall(wire.OpAuth, authRequest("digest", "u:p"))
	}
}

// TestHundredThousandWatches sets watches on missing nodes, triggers some, and ends the connection.
func TestHundredThousandWatches(t *testing.T) {
	s := startServer(t, patient)
	st := newTestClients(t, s)
	before := heapInUse()
	a := st.joinFor("a", time.Hour)
	for batch := range 20 {
		paths := make([]string, 5000)
		for i := range paths {
			paths[i] = fmt.Sprintf("/w%d", batch*5000+i)
		}
		a.mustCall(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: 1 << 40, Exist: paths})
	}
	require.Less(t, heapInUse()-before, int64(100_000*1<<10))
	require.Len(t, s.Watches(), 100_000)
	done := politeClient(t, s)
	b := st.joinFor("b", time.Hour)
	for i := range 1000 {
		go func() { _, _ = a.frame() }()
		b.mustCall(wire.OpCreate, createRequest(fmt.Sprintf("/w%d", i), "", 0))
	}
	done()
	require.NoError(t, a.nc.Close())
	require.Eventually(t, func() bool { return len(s.Watches()) == 0 }, time.Minute, time.Millisecond)
	require.Less(t, heapInUse()-before, int64(16*mebibyte))
}

// TestUnknownOperationsAreNotCounted: counts for them would use memory without limit.
func TestUnknownOperationsAreNotCounted(t *testing.T) {
	s := startServer(t, patient)
	before := len(s.Requests())
	for op := range 1000 {
		nc := encodedHandshake(t, s)
		_, err := nc.Write(frameOf(wire.Op(1_000_000+op), nil))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, nc)
		require.NoError(t, err)
		require.NoError(t, nc.Close())
	}
	require.Len(t, s.Requests(), before)
}

// TestGarbageInSessions writes random bytes after a handshake, in frames and without.
func TestGarbageInSessions(t *testing.T) {
	s := startServer(t, patient)
	done := politeClient(t, s)
	random := rand.New(rand.NewSource(1))
	for i := range 2000 {
		nc := encodedHandshake(t, s)
		go io.Copy(io.Discard, nc) // any answer
		b := make([]byte, random.Intn(300))
		_, _ = random.Read(b)
		if i%2 == 0 {
			b = frameOf(wire.Op(random.Intn(120)-12), b)
		}
		_, _ = nc.Write(b)
		require.NoError(t, nc.Close())
	}
	done()
	require.Eventually(t, func() bool { return s.Connections() == 1 }, time.Minute, time.Millisecond)
	checkInvariants(t, s)
}
