package waitgraph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// serverRequestsPerSecond is how many requests a session sends to search for deadlocks, on average:
// a scan begins no sooner than the requests of the one before allow. It does not count the creates
// and deletes of records, two for each lock request that waits for more than a second.
const serverRequestsPerSecond = 200

// sessionScanner reads the graph for all lock requests of one session that search for deadlocks.
// They share each scan, so the number of reads does not rise with the number of lock requests.
type sessionScanner struct {
	s    *framework.Session
	root string

	mu       sync.Mutex
	next     *scan     // has not begun; nil if no lock request waits for it
	running  bool      // another scan reads
	ended    time.Time // the end of the last scan
	requests int       // sent since the last scan began
}

// scan is one series of reads, for the lock requests that wait for it.
type scan struct {
	requests map[string]func() []string // returns the locks that the caller holds, by the path of the record
	pause    time.Duration              // since the end of the scan before
	timer    *time.Timer
	done     chan struct{}

	// Set before done is closed.
	graph *graph
	gone  map[string]bool // records that other clients have deleted
	err   error
}

// sessionScannerKey finds the sessionScanner of a session.
type sessionScannerKey struct{}

// scannerOf returns the session's scanner, for one use, which ends with leave.
func scannerOf(s *framework.Session, root string) *sessionScanner {
	start := func() any { return &sessionScanner{s: s, root: root} }
	return primitives.Of(s).Share(sessionScannerKey{}, start).(*sessionScanner)
}

func (sc *sessionScanner) leave() { primitives.Of(sc.s).Unshare(sessionScannerKey{}) }

// awaitScan returns the result of the next scan, which begins after this call and a pause since the
// scan before, or earlier for another lock request. The scan includes the requests that wait for
// the locks of held.
func (sc *sessionScanner) awaitScan(ctx context.Context, record string, held func() []string,
	pause time.Duration) (*scan, error) {
	sc.mu.Lock()
	if sc.next == nil {
		sc.next = &scan{requests: map[string]func() []string{}, pause: pause, done: make(chan struct{})}
	}
	next := sc.next
	next.requests[record] = held
	next.pause = min(next.pause, pause)
	sc.schedule()
	sc.mu.Unlock()
	select {
	case <-next.done:
		return next, next.err
	case <-sc.s.Done():
		return nil, context.Cause(sc.s.Context())
	case <-ctx.Done():
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.next != next { // it has begun
		return nil, ctx.Err()
	}
	if delete(next.requests, record); len(next.requests) == 0 {
		if next.timer != nil {
			next.timer.Stop()
		}
		sc.next = nil
	}
	return nil, ctx.Err()
}

// schedule sets the begin of the next scan. sc.mu is held.
func (sc *sessionScanner) schedule() {
	next := sc.next
	if next == nil || sc.running {
		return
	}
	wait := time.Until(sc.ended.Add(max(next.pause, time.Duration(sc.requests)*time.Second/serverRequestsPerSecond)))
	if next.timer != nil {
		next.timer.Reset(wait)
		return
	}
	next.timer = time.AfterFunc(wait, func() { sc.run(next) })
}

// run runs a scan, unless it has run or no request waits for it any more.
func (sc *sessionScanner) run(next *scan) {
	sc.mu.Lock()
	if sc.next != next {
		sc.mu.Unlock()
		return
	}
	sc.next, sc.running, sc.requests = nil, true, 0
	sc.mu.Unlock()
	next.err = next.read(sc.s.Context(), countingReader{sc.s, sc.count}, sc.root)
	close(next.done)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.running, sc.ended = false, time.Now()
	sc.schedule()
}

// read finds out which records are gone, and reads the graph.
func (n *scan) read(ctx context.Context, r countingReader, root string) error {
	records := slices.Sorted(maps.Keys(n.requests))
	nodes, err := r.GetAll(ctx, records...)
	if err != nil {
		return err
	}
	n.gone = map[string]bool{}
	var held []string
	for i, record := range records {
		n.gone[record] = errors.Is(nodes[i].Err, framework.ErrNoNode)
		held = append(held, n.requests[record]()...)
	}
	n.graph, err = readGraph(ctx, r, root, held)
	return err
}

// count counts reads and writes.
func (sc *sessionScanner) count(requests int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.requests += requests
}
