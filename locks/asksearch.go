package locks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// askRequestsPerSecond is how many requests a session sends to look for deadlocks, on average: a
// look begins no sooner than the requests of the one before allow. It does not count the creates
// and deletes of records, two for each ask that waits for more than a second.
const askRequestsPerSecond = 200

// askSearch reads the asks for all asks of one session that look for a deadlock. They share each
// look, so the number of requests does not rise with the number of asks.
type askSearch struct {
	s    *framework.Session
	root string

	mu       sync.Mutex
	next     *askLook  // has not begun; nil if no ask waits for it
	running  bool      // another look reads
	ended    time.Time // the end of the last look
	requests int       // sent since the last look began
}

// askLook is one series of reads, for the asks that wait for it.
type askLook struct {
	asks  map[string]func() []string // the locks that an ask's caller holds, by the path of the ask's record
	pause time.Duration              // since the end of the look before
	timer *time.Timer
	done  chan struct{}

	// Set before done is closed.
	graph *askGraph
	gone  map[string]bool // records that other clients have deleted
	err   error
}

// askSearchKey finds the askSearch of a session.
type askSearchKey struct{}

// askSearchOf returns the session's search, for one use, which ends with leave.
func askSearchOf(s *framework.Session, root string) *askSearch {
	return s.Primitives().Share(askSearchKey{}, func() any { return &askSearch{s: s, root: root} }).(*askSearch)
}

func (l *askSearch) leave() { l.s.Primitives().Unshare(askSearchKey{}) }

// awaitLook returns the result of the next look, which begins after this call and a pause since the
// look before, or earlier for another ask. The look includes the asks that wait for the locks of
// held.
func (l *askSearch) awaitLook(ctx context.Context, record string, held func() []string,
	pause time.Duration) (*askLook, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &askLook{asks: map[string]func() []string{}, pause: pause, done: make(chan struct{})}
	}
	look := l.next
	look.asks[record] = held
	look.pause = min(look.pause, pause)
	l.schedule()
	l.mu.Unlock()
	select {
	case <-look.done:
		return look, look.err
	case <-l.s.Done():
		return nil, context.Cause(l.s.Context())
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != look { // it has begun
		return nil, ctx.Err()
	}
	if delete(look.asks, record); len(look.asks) == 0 {
		if look.timer != nil {
			look.timer.Stop()
		}
		l.next = nil
	}
	return nil, ctx.Err()
}

// schedule sets the begin of the next look. l.mu is held.
func (l *askSearch) schedule() {
	look := l.next
	if look == nil || l.running {
		return
	}
	wait := time.Until(l.ended.Add(max(look.pause, time.Duration(l.requests)*time.Second/askRequestsPerSecond)))
	if look.timer != nil {
		look.timer.Reset(wait)
		return
	}
	look.timer = time.AfterFunc(wait, func() { l.run(look) })
}

// run runs a look, unless it has run or nobody waits for it any more.
func (l *askSearch) run(look *askLook) {
	l.mu.Lock()
	if l.next != look {
		l.mu.Unlock()
		return
	}
	l.next, l.running, l.requests = nil, true, 0
	l.mu.Unlock()
	look.err = look.read(l.s.Context(), sessionReads{l.s, l.count}, l.root)
	close(look.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.ended = false, time.Now()
	l.schedule()
}

// read finds out which of the asks' records are gone, and reads the graph.
func (k *askLook) read(ctx context.Context, r sessionReads, root string) error {
	records := slices.Sorted(maps.Keys(k.asks))
	nodes, err := r.GetAll(ctx, records...)
	if err != nil {
		return err
	}
	k.gone = map[string]bool{}
	var held []string
	for i, record := range records {
		k.gone[record] = errors.Is(nodes[i].Err, framework.ErrNoNode)
		held = append(held, k.asks[record]()...)
	}
	k.graph, err = readAskGraph(ctx, r, root, held)
	return err
}

// count counts requests.
func (l *askSearch) count(requests int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests += requests
}
