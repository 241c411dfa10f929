package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
)

// batchReader reads the items of a consumer session, many in one request. Reads that are asked for
// during a request share the next one. A full request does not wait.
type batchReader struct {
	ctx   context.Context // the consumer session's
	s     *framework.Session
	tasks *background.Tasks

	mu       sync.Mutex
	asked    []batchRead
	inFlight int // requests on their way
	most     int // reads in a request
}

func newBatchReader(ctx context.Context, s *framework.Session, tasks *background.Tasks) *batchReader {
	return &batchReader{ctx: ctx, s: s, tasks: tasks, most: firstBatchReads}
}

// batchRead is an item to read.
type batchRead struct {
	path string
	then func(framework.Node) // must not block
}

// Limits of a request. The size of an item is unknown before it was read, so the largest item of
// the last answer counts. If all items suddenly have the largest size, maxBatchReads keeps an
// answer below 16 MiB.
const (
	firstBatchReads = 8
	maxBatchReads   = 16
	maxReadRequests = 8 // on their way
	maxAnswerBytes  = 256 << 10
)

// readAsync reads an item and calls then with the answer.
func (b *batchReader) readAsync(path string, then func(framework.Node)) {
	b.mu.Lock()
	b.asked = append(b.asked, batchRead{path, then})
	start := b.inFlight == 0 || b.inFlight < maxReadRequests && len(b.asked) >= b.most
	if start {
		b.inFlight++
	}
	b.mu.Unlock()
	if start && !b.tasks.Start(b.readBatches) {
		b.readBatches() // the consumer session has ended: all reads fail
	}
}

// readAndWait reads an item.
func (b *batchReader) readAndWait(ctx context.Context, path string) framework.Node {
	answer := make(chan framework.Node, 1)
	b.readAsync(path, func(n framework.Node) { answer <- n })
	select {
	case n := <-answer:
		return n
	case <-ctx.Done():
		return framework.Node{Err: context.Cause(ctx)}
	}
}

func (b *batchReader) readBatches() {
	for {
		batch := b.nextBatch()
		if len(batch) == 0 {
			return
		}
		b.readBatch(batch)
	}
}

func (b *batchReader) nextBatch() (batch []batchRead) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.asked), b.most)
	if n < b.most && b.inFlight > 1 { // the request that is answered first takes the rest along
		n = 0
	}
	if n == 0 {
		b.inFlight--
	}
	batch, b.asked = b.asked[:n:n], b.asked[n:]
	return batch
}

// readBatch reads a batch in one request, or by halves if the answer would be too large.
func (b *batchReader) readBatch(batch []batchRead) {
	paths := make([]string, len(batch))
	for i, read := range batch {
		paths[i] = read.path
	}
	nodes, err := b.s.GetAll(b.ctx, paths...)
	if errors.Is(err, framework.ErrTooLarge) && len(batch) > 1 {
		b.readBatch(batch[:len(batch)/2])
		b.readBatch(batch[len(batch)/2:])
		return
	}
	if err == nil {
		b.adjustBatchSize(nodes)
	}
	for i, read := range batch {
		if err != nil {
			read.then(framework.Node{Err: err})
		} else {
			read.then(nodes[i])
		}
	}
}

// adjustBatchSize sets how many reads may share a request, by the size of the items that were read.
func (b *batchReader) adjustBatchSize(nodes []framework.Node) {
	largest := 1
	for _, n := range nodes {
		largest = max(largest, len(n.Data))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = max(1, min(maxAnswerBytes/largest, maxBatchReads, 2*b.most))
}
