package redislock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

var (
	seed = flag.Uint64("seed", 1, "of the first run of TestSeeds")
	runs = flag.Int("runs", 0, "of TestSeeds; 0: 12, and 4 with -short")
)

// TestSeeds lets clients use one lock for two minutes of virtual time while their links are cut,
// slow in either direction and lose answers, and checks that no two hold, that tokens rise, and
// that at the end nothing is left and each client is granted again.
func TestSeeds(t *testing.T) {
	n := *runs
	switch {
	case n > 0:
	case testing.Short():
		n = 4
	default:
		n = 12
	}
	for n := range n {
		s := *seed + uint64(n)
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *memoryServer) { runSeed(t, server, s) })
		})
	}
}

// history checks grants as they happen.
type history struct {
	mu      sync.Mutex
	writers map[*locks.Lease]bool
	readers map[*locks.Lease]bool
	token   int64
	grants  int
	wrong   []string
}

// begin records a grant. Every other lease that excludes it must have ended.
func (h *history) begin(lease *locks.Lease, reads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants++
	for other := range h.writers {
		if other.Err() == nil {
			h.wrong = append(h.wrong, fmt.Sprintf("grant %d stands beside the exclusive grant %d", lease.Token(),
				other.Token()))
		}
	}
	if reads {
		h.readers[lease] = true
		return
	}
	for other := range h.readers {
		if other.Err() == nil {
			h.wrong = append(h.wrong, fmt.Sprintf("grant %d stands beside a reader", lease.Token()))
		}
	}
	if lease.Token() <= h.token {
		h.wrong = append(h.wrong, fmt.Sprintf("token %d after %d", lease.Token(), h.token))
	}
	h.token = lease.Token()
	h.writers[lease] = true
}

func (h *history) end(lease *locks.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.writers, lease)
	delete(h.readers, lease)
}

func runSeed(t *testing.T, server *memoryServer, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	var opts []Option
	expiry := time.Duration(1+random.IntN(20)) * time.Second
	opts = append(opts, WithExpiry(expiry))
	readWrite, ordered := random.IntN(2) == 0, random.IntN(2) == 0
	if ordered && !readWrite {
		opts = append(opts, WithArrivalOrder())
	}
	h := &history{writers: map[*locks.Lease]bool{}, readers: map[*locks.Lease]bool{}}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var all sync.WaitGroup
	var links []*link
	var lockers [][2]locks.Locker
	for range 2 + random.IntN(4) {
		client, to := server.newClient(t)
		links = append(links, to)
		both := [2]locks.Locker{NewMutex(client, "orders", opts...).virtual(), nil}
		both[1] = both[0]
		if readWrite {
			rw := NewRWLock(client, "orders", opts...).virtual()
			both = [2]locks.Locker{rw, rw.RLocker()}
		}
		lockers = append(lockers, both)
		for range 1 + random.IntN(3) {
			own := rand.New(rand.NewPCG(seed, random.Uint64()))
			all.Go(func() { h.useLock(ctx, own, both, readWrite, expiry) })
		}
	}
	for ctx.Err() == nil {
		l := links[random.IntN(len(links))]
		switch random.IntN(7) {
		case 0:
			l.set(func(l *link) { l.cut = true })
		case 1:
			l.set(func(l *link) { l.delay = time.Duration(random.IntN(900)) * time.Millisecond })
		case 2:
			l.set(func(l *link) { l.loseNext = true })
		case 3:
			l.set(func(l *link) { l.late = time.Duration(random.IntN(4000)) * time.Millisecond })
		case 4:
			for _, l := range links {
				l.set(func(l *link) { l.cut, l.delay, l.late = false, 0, 0 })
			}
		default:
			l.set(func(l *link) { l.cut, l.delay, l.late = false, 0, 0 })
		}
		time.Sleep(time.Duration(random.Int64N(int64(2 * expiry))))
	}
	for _, l := range links {
		l.set(func(l *link) { l.cut, l.delay, l.late, l.loseNext = false, 0, 0, false })
	}
	all.Wait()
	time.Sleep(2 * expiry)
	require.Empty(t, h.wrong)
	require.Positive(t, h.grants)
	for _, both := range lockers {
		for _, l := range both {
			lease, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		}
	}
	for _, key := range server.Keys() {
		require.Contains(t, []string{"{orders}:token", "{orders}:arrivals"}, key)
	}
}

// useLock acquires and releases the lock again and again. It keeps some leases until they end.
func (h *history) useLock(ctx context.Context, random *rand.Rand, both [2]locks.Locker, readWrite bool,
	expiry time.Duration) {
	for ctx.Err() == nil {
		which := random.IntN(2)
		patience, cancel := context.WithTimeout(ctx, time.Duration(1+random.Int64N(int64(4*expiry))))
		after := ctx
		if random.IntN(4) == 0 { // both calls ask in this goroutine
			patience, after = context.Background(), context.Background()
		}
		lock := both[which].Lock
		if random.IntN(4) == 0 {
			lock = both[which].TryLock
		}
		lease, err := lock(patience)
		cancel()
		if err != nil {
			_ = sleep(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
			continue
		}
		h.begin(lease, readWrite && which == 1)
		_ = sleep(lease.Context(), time.Duration(random.Int64N(int64(2*expiry))))
		h.end(lease)
		_ = lease.Release(after) // it may be over, and the link may be cut
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.New("ended")
	}
}
