package zkserver

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// silentConn is a network connection that accepts all writes, and whose reads never return.
type silentConn struct{ net.Conn }

func (silentConn) Read([]byte) (int, error)         { select {} }
func (silentConn) Write(b []byte) (int, error)      { return len(b), nil }
func (silentConn) Close() error                     { return nil }
func (silentConn) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 4} }
func (silentConn) SetDeadline(time.Time) error      { return nil }
func (silentConn) SetWriteDeadline(time.Time) error { return nil }

// superDigest is the digest of super:test.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// FuzzConversation passes any stream of frames to the server, as the goroutine that reads a
// connection does. The server must not panic, and its state must stay consistent.
func FuzzConversation(f *testing.F) {
	frames := func(requests ...wire.MultiPart) []byte {
		var e wire.Encoder
		for i, r := range requests {
			mark := e.BeginFrame()
			wire.RequestHeader{Xid: int32(i), Op: r.Op}.Encode(&e)
			r.Body.Encode(&e)
			e.EndFrame(mark)
		}
		return e.Bytes()
	}
	f.Add(frames(multiPart(wire.OpCreate, createRequest("/a", "x", 1)), multiPart(wire.OpGetData, watchRequest("/a")),
		multiPart(wire.OpCloseSession, &wire.EmptyRequest{})))
	f.Add(frames(multiPart(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest("/a", "", 3)),
		multiPart(wire.OpDelete, numberRequest("/b", 0))))))
	f.Add(frames(multiPart(wire.OpAddWatch, numberRequest("/", 1)), multiPart(wire.OpCreateTTL, createTTL("/t", 5, 10)),
		multiPart(wire.OpRemoveWatches, numberRequest("/", 3))))
	f.Add(frames(multiPart(wire.OpSetWatches2,
		&wire.SetWatchesRequest{Two: true, Recurse: []string{"/a"}, Data: []string{"/b"}})))
	f.Add(frames(multiPart(wire.OpAuth, authRequest("digest", "u:p")),
		multiPart(wire.OpSetACL, setACL("/", -1, aclEntry(31, "auth", "")))))
	f.Add(frames(multiPart(wire.OpAuth, authRequest("digest", "super:test")),
		multiPart(wire.OpCreate, createRequest("/zookeeper/quota/a", "", 0)),
		multiPart(wire.OpCreate, createRequest("/zookeeper/quota/a/zookeeper_limits", "countHardLimit=1", 0)),
		multiPart(wire.OpCreate, createRequest("/zookeeper/quota/a/zookeeper_stats", "", 0)),
		multiPart(wire.OpCreate, createRequest("/a", "x", 0))))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, err := New(Config{ExtendedTypes: true, EnforceQuota: true, SuperDigest: superDigest})
		require.NoError(t, err)
		defer s.Close()
		c := addSilentConnection(s)
		in := strings.NewReader(string(stream))
		for {
			frame, err := wire.ReadFrame(in, nil, wire.MaxFrame)
			if err != nil || !s.processFrame(c, frame) {
				break
			}
			require.LessOrEqual(t, len(c.outgoing.frames), 64*len(stream)+64<<10,
				"the answers are too large for the requests")
		}
		checkInvariants(t, s)
	})
}

func TestGarbageOnlyEndsItsOwnConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		random := rand.New(rand.NewSource(1))
		for range 200 {
			nc := st.dial()
			b := make([]byte, random.Intn(200))
			_, _ = random.Read(b)
			go func() {
				_, _ = nc.Write(b)
				_ = nc.Close()
			}()
		}
		synctest.Wait()
		a.mustCall(wire.OpPing, &wire.EmptyRequest{})
		require.Equal(t, 1, s.Connections())
	})
}

func TestTenThousandHalfFramesNeedLittleMemory(t *testing.T) {
	for name, c := range map[string]struct {
		dial      func(*testing.T, *Server) net.Conn
		announced uint32
		each      int // bytes
	}{
		"first":        {pipeTo, maxHandshake, 40 << 10},
		"in a session": {encodedHandshake, wire.MaxFrame, 110 << 10}, // each connection announces a frame of a megabyte
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, patient)
			before := heapInUse()
			head := binary.BigEndian.AppendUint32(nil, c.announced)
			for range crowd {
				nc := c.dial(t, s)
				_, err := nc.Write(append(head, 0)) // one byte of the frame, and no more
				require.NoError(t, err)
				t.Cleanup(func() { _ = nc.Close() })
			}
			require.Less(t, heapInUse()-before, int64(crowd*c.each))
			require.Equal(t, crowd, s.Connections())
			newTestClients(t, s).joinClient("a").mustCall(wire.OpPing, &wire.EmptyRequest{})
		})
	}
}

func heapInUse() int64 {
	runtime.GC() // twice, because objects in a sync.Pool survive the first
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestRequestsWaitForSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		a := st.joinClient("a")
		a.mustCall(wire.OpCreate, createRequest("/big", strings.Repeat("x", 500_000), 0))
		const asked = 20
		go func() {
			for range asked {
				a.send(wire.OpGetData, readRequest("/big"))
			}
		}()
		synctest.Wait()
		require.Less(t, s.Requests()[wire.OpGetData], int64(asked), "the server has not read the other requests")
		for range asked {
			a.await()
		}
		require.Equal(t, int64(asked), s.Requests()[wire.OpGetData])
	})
}

func TestClientNotReadingEventsIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{OutgoingLimit: 10_000})
		st := newTestClients(t, s)
		deaf, a := st.joinFor("deaf", 40*time.Second), st.joinFor("a", 40*time.Second)
		deaf.mustCall(wire.OpAddWatch, numberRequest("/", wire.AddWatchPersistentRecursive))
		for i := range 1000 {
			a.mustCall(wire.OpCreate, createRequest(fmt.Sprintf("/n%d", i), "", 0))
		}
		require.Equal(t, 1, s.Connections())
		require.Len(t, s.Sessions(), 2, "its session goes on")
		deaf.waitForClose()
	})
}

// TestAnAnswerLargerThanTheLimitCutsNobody: events come while the client still reads the answer.
func TestAnAnswerLargerThanTheLimitCutsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{OutgoingLimit: 10_000})
		st := newTestClients(t, s)
		reader, a := st.joinFor("reader", 40*time.Second), st.joinFor("a", 40*time.Second)
		a.mustCall(wire.OpCreate, createRequest("/big", strings.Repeat("x", 500_000), 0))
		reader.mustCall(wire.OpAddWatch, numberRequest("/", wire.AddWatchPersistentRecursive))
		reader.send(wire.OpGetData, readRequest("/big"))
		synctest.Wait() // the answer waits for the client
		for i := range 100 {
			a.mustCall(wire.OpCreate, createRequest(fmt.Sprintf("/n%d", i), "", 0))
		}
		require.Equal(t, 2, s.Connections())
		reader.await()
	})
}

func TestCloseDoesNotWaitForSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{})
		a := newTestClients(t, s).joinClient("a")
		a.send(wire.OpCloseSession, &wire.EmptyRequest{}) // the client does not read the answer
		synctest.Wait()
		start := time.Now()
		s.Close()
		require.Zero(t, time.Since(start))
	})
}
