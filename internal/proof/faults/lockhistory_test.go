package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// lockHistory records every grant of one lock and reports two holders. Times are readings of this
// process's monotonic clock.
type lockHistory struct {
	t    *testing.T
	path string
	// naive is set if naive holders hold. They are expected to overlap with the next holder under
	// some faults, so overlaps are counted and do not fail the test.
	naive bool

	mu         sync.Mutex
	grants     []*grant
	overlapped bool // a naive holder with the next one
}

// reportOverlap fails the test, unless naive is set.
func (h *lockHistory) reportOverlap(format string, args ...any) {
	if h.naive {
		h.overlapped = true
		return
	}
	h.t.Errorf(format, args...)
}

// grant is one lease that Lock returned.
type grant struct {
	name  string
	lease *locks.Lease
	at    time.Time // read just after Lock returned

	mu       sync.Mutex
	endedAt  time.Time // when the end of the lease's context was seen
	released bool
	endSeen  chan struct{} // closed when endedAt is set
}

// lock waits for the lock. It may be called in any goroutine.
func (h *lockHistory) lock(name string, c *framework.Client) (*grant, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), waitLimit)
	defer cancel()
	lease, err := locks.NewMutex(c, h.path).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return h.addGrant(name, lease), nil
}

// errNoWait is returned if a waiter is granted without a wait, because the holder was lost.
var errNoWait = errors.New("granted without waiting")

// startWaiter starts a waiter, and returns when it is in line. The channel receives the grant; it
// is closed if the wait fails. The error wraps errNoWait if the holder was lost.
func (h *lockHistory) startWaiter(name string, c *framework.Client) (<-chan *grant, error) {
	queued, next := make(chan struct{}), make(chan *grant, 1)
	var once sync.Once
	mutex := locks.NewMutex(c, h.path, locks.WithOnWait(func(int) { once.Do(func() { close(queued) }) }))
	var failed error
	go func() {
		defer close(next)
		lease, err := mutex.Lock(h.t.Context())
		if err != nil {
			failed = err
			return
		}
		next <- h.addGrant(name, lease)
	}()
	select {
	case <-queued:
		return next, nil
	case g, ok := <-next:
		if !ok {
			return nil, failed
		}
		return nil, fmt.Errorf("%s was %w %s, token %#x", name, errNoWait, h.path, g.lease.Token())
	case <-time.After(waitLimit):
		return nil, fmt.Errorf("%s did not join the line of %s", name, h.path)
	}
}

// awaitGrant waits for the grant of startWaiter's channel.
func awaitGrant(t *testing.T, next <-chan *grant) *grant {
	t.Helper()
	select {
	case g := <-next:
		require.NotNil(t, g, "the wait failed")
		return g
	case <-time.After(waitLimit):
		require.Fail(t, "the waiter was not granted")
		return nil
	}
}

// addGrant adds a grant. It must be called as soon as Lock has returned. Of any two leases, the one
// with the lower token must have ended.
func (h *lockHistory) addGrant(name string, lease *locks.Lease) *grant {
	g := &grant{name: name, lease: lease, at: time.Now(), endSeen: make(chan struct{})}
	context.AfterFunc(lease.Context(), g.noteEnd)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.grants {
		older := o
		if o.lease.Token() > lease.Token() {
			older = g
		}
		if o.lease.Token() == lease.Token() || !older.hasEnded() {
			h.reportOverlap("two holders of %s: %s (token %#x) beside %s (token %#x)", h.path, name, lease.Token(),
				o.name, o.lease.Token())
		}
	}
	h.grants = append(h.grants, g)
	return g
}

func (g *grant) noteEnd() {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endedAt = now
	close(g.endSeen)
}

// hasEnded checks the channel only: the context's Err reads the clock, and could end the lease that
// is under test.
func (g *grant) hasEnded() bool {
	select {
	case <-g.lease.Context().Done():
		return true
	default:
		return false
	}
}

// release releases the lease.
func (g *grant) release(ctx context.Context) {
	g.mu.Lock()
	g.released = !g.hasEnded()
	g.mu.Unlock()
	_ = g.lease.Release(ctx) // it returns no error after a loss
}

// checkGaps checks that each lease had ended before the next grant, and that tokens rise with time.
// It returns the time from each loss to the next grant. It skips leases that were released, because
// their holders have ended them.
func (h *lockHistory) checkGaps() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.grants, func(a, b *grant) int { return a.at.Compare(b.at) })
	var gaps []time.Duration
	for i, next := range h.grants[1:] {
		g := h.grants[i]
		if g.lease.Token() >= next.lease.Token() {
			h.t.Errorf("%s: token %#x of %s is not above %#x of %s", h.path, next.lease.Token(), next.name,
				g.lease.Token(), g.name)
		}
		if gap, lost := g.gapBefore(next); lost {
			gaps = append(gaps, gap)
			if gap <= 0 {
				h.reportOverlap("%s: %s saw its end %v after %s was granted", h.path, g.name, -gap, next.name)
			}
		}
	}
	return gaps
}

// gapBefore returns the time from the end of a lost lease to the next grant.
func (g *grant) gapBefore(next *grant) (gap time.Duration, lost bool) {
	select {
	case <-g.endSeen:
	case <-time.After(waitLimit): // addGrant has reported two holders
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return next.at.Sub(g.endedAt), !g.released
}
