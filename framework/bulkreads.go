package framework

import (
	"cmp"
	"context"
	"sync"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Bounds of the answers to requests that read many nodes. A server answers in order, so the answers
// to a heartbeat's write and to its sync each wait behind the answers to the requests before them.
const (
	bulkAnswer     = 512 << 10      // bytes that one answer should have; that with a single node may have more
	bulkExpected   = 2 * bulkAnswer // bytes that all awaited answers should have together
	bulkNodes      = 1000           // nodes in one request
	bulkPaths      = 400_000        // bytes of the paths in one request
	bulkFirstNodes = 4              // nodes that the first request of a call has however large they may be
	bulkGrowth     = 64             // a request may have that many times as many nodes as the one before
	bulkMemory     = 16             // an answer with small nodes makes the largest node count that part less
)

// bulkReads bounds the answers that a session awaits to requests that read many nodes. The size of
// a node is not known before it is read. So each request expects nodes like those in the answers
// before.
type bulkReads struct {
	caller *caller

	mu       sync.Mutex
	sizes    map[wire.Op]bulkSizes // by the kind of read
	expected int                   // bytes of all answers that are awaited
	answered chan struct{}         // closed and replaced when an answer or the end of a connection has come
}

// bulkSizes are what a session knows of the sizes of nodes.
type bulkSizes struct {
	largest int // bytes of the largest node that an answer had; forgotten slowly
	assumed int // bytes that the first request of a call expects of each node
}

func (b *bulkReads) init(c *caller) {
	b.caller, b.sizes, b.answered = c, map[wire.Op]bulkSizes{}, make(chan struct{})
}

// bulkRead is one call that reads many nodes, in one request after the other.
type bulkRead struct {
	all      *bulkReads
	kind     wire.Op
	nodeSize int // bytes that the next request expects of each node
	least    int // nodes that the next request has however large they may be
}

func (b *bulkReads) begin(kind wire.Op) *bulkRead {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &bulkRead{b, kind, cmp.Or(b.sizes[kind].assumed, bulkAnswer/bulkFirstNodes), bulkFirstNodes}
}

// nodes returns how many of the first paths, of which there is at least one, the next request
// reads.
func (r *bulkRead) nodes(paths []string) (n int) {
	most := min(max(r.least, bulkAnswer/r.nodeSize), bulkNodes, len(paths))
	for bytes := 0; n < most; n++ {
		if bytes += len(paths[n]) + partOverhead; bytes > bulkPaths && n > 0 {
			break
		}
	}
	return n
}

// expect waits until the answer to a request of n nodes may be awaited, too. The caller calls
// received when the answer, or the end of the connection, has come.
func (r *bulkRead) expect(ctx context.Context, n int) (received func(), err error) {
	b, c := r.all, r.all.caller
	bytes := min(n*r.nodeSize, bulkAnswer)
	for {
		b.mu.Lock()
		if b.expected+bytes <= bulkExpected {
			b.expected += bytes
			b.mu.Unlock()
			return func() { b.answerReceived(bytes) }, nil
		}
		answered := b.answered
		b.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return nil, c.callEnded(ctx)
		case <-c.session.Done():
			return nil, context.Cause(c.session)
		}
	}
}

func (b *bulkReads) answerReceived(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected -= bytes
	close(b.answered)
	b.answered = make(chan struct{})
}

// learn records the size of the largest node in an answer.
func (r *bulkRead) learn(largest int) {
	largest = max(largest, bulkAnswer/bulkNodes)
	r.nodeSize, r.least = max(largest, r.nodeSize/bulkGrowth), 1
	b := r.all
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.sizes[r.kind]
	known.largest = max(largest, known.largest-known.largest/bulkMemory)
	known.assumed = max(known.largest, known.assumed/bulkGrowth)
	b.sizes[r.kind] = known
}

// beCareful is called when an answer was too large, or did not come before the connection was lost:
// the next request has one node, and other calls begin carefully, too.
func (r *bulkRead) beCareful() {
	r.nodeSize, r.least = bulkAnswer, 1
	b := r.all
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.sizes[r.kind]
	known.assumed = bulkAnswer / bulkFirstNodes
	b.sizes[r.kind] = known
}
