package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// batchReader reads the items of a consumer session, many in one request: what is asked for while one is under way shares the next,
// which does not wait if it is full.
type batchReader struct {
	sh *consumerSession

	mu    sync.Mutex
	asked []batchRead
	busy  int // requests under way
	most  int // that share a request
}

func newBatchReader(sh *consumerSession) *batchReader {
	return &batchReader{sh: sh, most: firstLookups}
}

// batchRead is an item that somebody wants to read.
type batchRead struct {
	path string
	then func(framework.Node) // must not block
}

// What one answer may hold. The size of an item is not known before it was read: what counts is the largest of the last
// answer. If suddenly all are as large as can be, mostLookups keeps the answer below 16 MiB.
const (
	firstLookups = 8
	mostLookups  = 16
	mostRequests = 8 // under way
	answerBytes  = 256 << 10
)

// readAsync reads an item and calls then with it.
func (l *batchReader) readAsync(path string, then func(framework.Node)) {
	l.mu.Lock()
	l.asked = append(l.asked, batchRead{path, then})
	start := l.busy == 0 || l.busy < mostRequests && len(l.asked) >= l.most
	if start {
		l.busy++
	}
	l.mu.Unlock()
	if start && !l.sh.tasks.start(l.readBatches) {
		l.readBatches() // the consumer session is over: all fail
	}
}

// readItem reads an item.
func (l *batchReader) readItem(ctx context.Context, path string) ([]byte, framework.Stat, error) {
	got := make(chan framework.Node, 1)
	l.readAsync(path, func(n framework.Node) { got <- n })
	select {
	case n := <-got:
		return n.Data, n.Stat, n.Err
	case <-ctx.Done():
		return nil, framework.Stat{}, context.Cause(ctx)
	}
}

func (l *batchReader) readBatches() {
	for {
		batch := l.nextBatch()
		if len(batch) == 0 {
			return
		}
		l.readBatch(batch)
	}
}

func (l *batchReader) nextBatch() (batch []batchRead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.asked), l.most)
	if n < l.most && l.busy > 1 { // whose answer comes first takes the rest along
		n = 0
	}
	if n == 0 {
		l.busy--
	}
	batch, l.asked = l.asked[:n:n], l.asked[n:]
	return batch
}

// readBatch reads a batch in one request; what is too large for that, by halves.
func (l *batchReader) readBatch(batch []batchRead) {
	paths := make([]string, len(batch))
	for i, b := range batch {
		paths[i] = b.path
	}
	nodes, err := l.sh.s.GetAll(l.sh.ctx, paths...)
	if errors.Is(err, framework.ErrTooLarge) && len(batch) > 1 {
		l.readBatch(batch[:len(batch)/2])
		l.readBatch(batch[len(batch)/2:])
		return
	}
	if err == nil {
		l.batchSize(nodes)
	}
	for i, b := range batch {
		if err != nil {
			b.then(framework.Node{Err: err})
		} else {
			b.then(nodes[i])
		}
	}
}

// batchSize tells how many may share the next request, by the items that were read.
func (l *batchReader) batchSize(nodes []framework.Node) {
	largest := 1
	for _, n := range nodes {
		largest = max(largest, len(n.Data))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(1, min(answerBytes/largest, mostLookups, 2*l.most))
}
