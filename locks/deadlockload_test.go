package locks_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// crowd is many requests of one client. Half of them hold one lock as readers and ask for a lock
// that another client holds, and the others hold one lock each and ask for the first.
type crowd struct {
	client *framework.Client
	leases []*locks.Lease // of the client
	slow   *locks.Lease   // of the other client
	asks   []<-chan nested
}

func newCrowd(t *testing.T, w *world, size int) *crowd {
	t.Helper()
	c := &crowd{client: w.member("crowd").Client,
		slow: held(t, t.Context(), locks.NewMutex(w.member("slow").Client, "/locks/slow"))}
	for i := range size {
		wanted, l := locks.Locker(locks.NewMutex(c.client, "/locks/slow")),
			locks.NewRWLock(c.client, "/locks/shared").RLocker()
		if i >= size/2 {
			wanted, l = locks.NewRWLock(c.client, "/locks/shared"),
				locks.NewMutex(c.client, fmt.Sprintf("/locks/own-%03d", i))
		}
		lease := held(t, t.Context(), l)
		c.leases = append(c.leases, lease)
		c.asks = append(c.asks, lockUnder(lease, wanted))
		synctest.Wait() // it stands in line, before the next one
	}
	return c
}

// end releases all that the crowd holds, in the order in which its requests are granted.
func (c *crowd) end(t *testing.T) {
	t.Helper()
	released(t, c.slow)
	for i, ask := range c.asks {
		got := <-ask
		require.NoError(t, got.err)
		released(t, got.lease, c.leases[i])
	}
}

// requestsOf counts the requests of a client's session during some time.
func requestsOf(t *testing.T, w *world, c *framework.Client, during time.Duration) int64 {
	t.Helper()
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	var count atomic.Int64
	stop := w.zk.Observe(func(r zktest.Request) {
		if r.Session == s.ID() {
			count.Add(1)
		}
	})
	defer stop()
	time.Sleep(during)
	return count.Load()
}

// TestRequestsOfASessionShareTheirScans has 100 requests without a deadlock, and then a deadlock
// among them.
func TestRequestsOfASessionShareTheirScans(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		many := newCrowd(t, w, 100)
		time.Sleep(5 * time.Second)
		require.Less(t, requestsOf(t, w, many.client, 10*time.Second), int64(250), "25 a second, heartbeats included")

		a, b := held(t, t.Context(), locks.NewMutex(many.client, "/locks/a")),
			held(t, t.Context(), locks.NewMutex(many.client, "/locks/b"))
		older := lockUnder(a, locks.NewMutex(many.client, "/locks/b"))
		time.Sleep(100 * time.Millisecond)
		isDeadlock(t, <-lockUnder(b, locks.NewMutex(many.client, "/locks/a")), "/locks/a", "/locks/b")
		released(t, b)
		got := <-older
		require.NoError(t, got.err)
		released(t, got.lease, a)
		many.end(t)
		synctest.Wait()
		require.Empty(t, waitsLeft(w))
	})
}

// TestASessionsScansAreBounded has a request before which 300 others wait for each other: a look
// takes six hundred requests.
func TestASessionsScansAreBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, other := w.member("a"), w.member("b")
		slow := held(t, t.Context(), locks.NewMutex(other.Client, "/locks/slow"))
		first := held(t, t.Context(), locks.NewMutex(m.Client, "/locks/000"))
		for i := range 300 {
			record := fmt.Sprintf(`{"v":1,"lock":"/locks/%03d","held":[{"lock":"/locks/%03d","node":"/locks/none","zxid":1}]}`, i, i+1)
			put(t, other.Client, fmt.Sprintf("/locks/%03d~waits/_c_0-ask-0", i), record, framework.Ephemeral)
		}
		ctx, giveUp := context.WithCancel(first.Context())
		ask := waitsOn(ctx, locks.NewMutex(m.Client, "/locks/slow"))
		require.Less(t, requestsOf(t, w, m.Client, 20*time.Second), int64(5_000), "200 a second, and one look")
		giveUp()
		require.ErrorIs(t, (<-ask).err, context.Canceled)
		released(t, first, slow)
	})
}
