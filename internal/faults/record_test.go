package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// record holds every grant of one lock and finds two holders. All times are readings of this
// process's monotonic clock.
type record struct {
	t    *testing.T
	path string

	mu     sync.Mutex
	grants []*grant
}

// grant is one time that Lock returned.
type grant struct {
	who   string
	lease *locks.Lease
	at    time.Time // just after Lock returned

	mu       sync.Mutex
	ended    time.Time // when the end of the lease's context was heard of
	released bool
	heard    chan struct{} // closed when ended is set
}

// lock waits for the lock. It may be called from any goroutine.
func (r *record) lock(who string, c *framework.Client) (*grant, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	lease, err := locks.NewMutex(c, r.path).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return r.granted(who, lease), nil
}

// queue returns once who waits in line. The channel gets the grant; a wait that failed closes it.
func (r *record) queue(who string, c *framework.Client) (<-chan *grant, error) {
	queued, next := make(chan struct{}), make(chan *grant, 1)
	var once sync.Once
	mutex := locks.NewMutex(c, r.path, locks.WithOnWait(func(int) { once.Do(func() { close(queued) }) }))
	var failed error
	go func() {
		defer close(next)
		lease, err := mutex.Lock(r.t.Context())
		if err != nil {
			failed = err
			return
		}
		next <- r.granted(who, lease)
	}()
	select {
	case <-queued:
		return next, nil
	case g, ok := <-next:
		if !ok {
			return nil, failed
		}
		return nil, fmt.Errorf("%s was granted %s at once, token %#x", who, r.path, g.lease.Token())
	case <-time.After(patience):
		return nil, fmt.Errorf("%s does not get into the line of %s", who, r.path)
	}
}

// await returns what queue's channel gets.
func await(t *testing.T, next <-chan *grant) *grant {
	t.Helper()
	select {
	case g := <-next:
		require.NotNil(t, g, "the wait failed")
		return g
	case <-time.After(patience):
		require.Fail(t, "the waiter was not granted")
		return nil
	}
}

// granted is to be called as soon as Lock returned. Of any two leases, that with the lower token must
// be over by the time that the other is there.
func (r *record) granted(who string, lease *locks.Lease) *grant {
	g := &grant{who: who, lease: lease, at: time.Now(), heard: make(chan struct{})}
	context.AfterFunc(lease.Context(), g.end)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.grants {
		older := o
		if o.lease.Token() > lease.Token() {
			older = g
		}
		if o.lease.Token() == lease.Token() || !older.over() {
			r.t.Errorf("two holders of %s: %s (token %#x) while %s (token %#x) holds", r.path, who, lease.Token(), o.who, o.lease.Token())
		}
	}
	r.grants = append(r.grants, g)
	return g
}

func (g *grant) end() {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = now
	close(g.heard)
}

// over looks at the channel alone: the context's Err would read the clock, and end what it should find out.
func (g *grant) over() bool {
	select {
	case <-g.lease.Context().Done():
		return true
	default:
		return false
	}
}

// release ends a lease that still stands.
func (g *grant) release(ctx context.Context) {
	g.mu.Lock()
	g.released = !g.over()
	g.mu.Unlock()
	_ = g.lease.Release(ctx) // never fails
}

// gaps checks that every grant but the last was over before the next one came, and that tokens rose
// with the time of the grants. It returns the time between a lease's loss and the next grant; there
// is none for leases that were released, whose order Release itself sees to.
func (r *record) gaps() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.grants, func(a, b *grant) int { return a.at.Compare(b.at) })
	var gaps []time.Duration
	for i, next := range r.grants[1:] {
		g := r.grants[i]
		if g.lease.Token() >= next.lease.Token() {
			r.t.Errorf("%s: token %#x of %s does not rise above %#x of %s", r.path, next.lease.Token(), next.who, g.lease.Token(), g.who)
		}
		if gap, lost := g.before(next); lost {
			gaps = append(gaps, gap)
			if gap <= 0 {
				r.t.Errorf("%s: %s heard of its end %v after %s was granted", r.path, g.who, -gap, next.who)
			}
		}
	}
	return gaps
}

// before is the time from the end of a lost lease to the next grant.
func (g *grant) before(next *grant) (gap time.Duration, lost bool) {
	select {
	case <-g.heard:
	case <-time.After(patience): // granted has found two holders
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return next.at.Sub(g.ended), !g.released
}
