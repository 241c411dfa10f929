package zkserver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// bench sends requests directly to the server, without a network.
type bench struct {
	s     *Server
	c     *connection
	frame wire.Encoder
}

func newBench(b *testing.B) *bench {
	s, err := New(Config{})
	require.NoError(b, err)
	b.Cleanup(s.Close)
	c := addSilentConnection(s)
	b.ReportAllocs()
	return &bench{s: s, c: c}
}

func (f *bench) do(b *testing.B, op wire.Op, body wire.Request) {
	f.frame.Reset()
	wire.RequestHeader{Xid: 1, Op: op}.Encode(&f.frame)
	body.Encode(&f.frame)
	if !f.s.processFrame(f.c, f.frame.Bytes()) {
		b.Fatal(op)
	}
	f.c.outgoing.pending, f.c.outgoing.frames = 0, f.c.outgoing.frames[:0]
}

func BenchmarkPing(b *testing.B) {
	f := newBench(b)
	for b.Loop() {
		f.do(b, wire.OpPing, &wire.EmptyRequest{})
	}
}

func BenchmarkCreateDelete(b *testing.B) {
	f := newBench(b)
	for b.Loop() {
		f.do(b, wire.OpCreate, createRequest("/node", "data", wire.FlagEphemeral))
		f.do(b, wire.OpDelete, numberRequest("/node", -1))
	}
}

// BenchmarkCreateAmongMany shows that the time of a create does not grow with the
// tree. Its B/op is the memory of a node.
func BenchmarkCreateAmongMany(b *testing.B) {
	f := newBench(b)
	for i := 0; b.Loop(); i++ {
		f.do(b, wire.OpCreate, createRequest("/item-", "0123456789", wire.FlagSequential))
	}
}

func BenchmarkGetData(b *testing.B) {
	f := newBench(b)
	for i := range 1000 {
		f.do(b, wire.OpCreate, createRequest(fmt.Sprintf("/n%d", i), "data", 0))
	}
	for b.Loop() {
		f.do(b, wire.OpGetData, readRequest("/n500"))
	}
}

func BenchmarkWatchedSet(b *testing.B) {
	f := newBench(b)
	f.do(b, wire.OpCreate, createRequest("/n", "data", 0))
	for b.Loop() {
		f.do(b, wire.OpGetData, watchRequest("/n"))
		f.do(b, wire.OpSetData, setDataRequest("/n", "data", -1))
	}
}
