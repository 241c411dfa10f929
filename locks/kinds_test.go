package locks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// shared are the options that fit mutexes and read-write locks.
type shared interface {
	locks.MutexOption
	locks.RWLockOption
}

// as returns options as those of one kind of lock.
func as[To, From any](opts []From) []To {
	out := make([]To, len(opts))
	for i, o := range opts {
		out[i] = any(o).(To)
	}
	return out
}

// ownerRecord is what Lockstep's contenders write into their nodes.
type ownerRecord struct {
	Version int `json:"v"`
	Owner   string
	PID     int
	Trace   map[string]string
}

func ownerIn(t *testing.T, data []byte) (o ownerRecord) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &o))
	require.Positive(t, o.Version)
	return o
}

// exclusive is one way to hold something alone.
type exclusive struct {
	name string
	make func(c *framework.Client, opts ...locks.Option) locks.Locker
}

var exclusives = []exclusive{
	{"mutex", func(c *framework.Client, opts ...locks.Option) locks.Locker {
		return locks.NewMutex(c, path, as[locks.MutexOption](opts)...)
	}},
	{"write lock", func(c *framework.Client, opts ...locks.Option) locks.Locker {
		return locks.NewRWLock(c, path, as[locks.RWLockOption](opts)...)
	}},
	{"semaphore of one", func(c *framework.Client, opts ...locks.Option) locks.Locker {
		return locks.NewSemaphore(c, path, 1, as[locks.SemaphoreOption](opts)...)
	}},
	{"claim", func(c *framework.Client, opts ...locks.Option) locks.Locker {
		return locks.NewClaim(c, path, as[locks.ClaimOption](opts)...)
	}},
	{"multi-lock", func(c *framework.Client, opts ...locks.Option) locks.Locker {
		m := as[locks.MutexOption](opts)
		return locks.NewMultiLock(locks.NewMutex(c, "/locks/z", m...), locks.NewMutex(c, path, m...))
	}},
}

// eachExclusive runs a test with every kind of lock that has one holder.
func eachExclusive(t *testing.T, test func(t *testing.T, w *world, kind exclusive)) {
	for _, kind := range exclusives {
		t.Run(kind.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { test(t, w, kind) })
		})
	}
}

// inherits is one kind of lock that knows the contexts of its leases, and one that it excludes.
type inherits struct {
	name        string
	make, rival func(c *framework.Client, opts ...shared) locks.Locker
}

var inheriting = []inherits{
	{"mutex", makeMutex, makeMutex},
	{"mutex with a slice", func(c *framework.Client, opts ...shared) locks.Locker {
		return locks.NewMutex(c, path, append(as[locks.MutexOption](opts), locks.WithLocalHandoff(time.Second))...)
	}, makeMutex},
	{"write lock", makeWriteLock, makeWriteLock},
	{"read lock", func(c *framework.Client, opts ...shared) locks.Locker {
		return locks.NewRWLock(c, path, as[locks.RWLockOption](opts)...).RLocker()
	}, makeWriteLock},
}

func makeMutex(c *framework.Client, opts ...shared) locks.Locker {
	return locks.NewMutex(c, path, as[locks.MutexOption](opts)...)
}

func makeWriteLock(c *framework.Client, opts ...shared) locks.Locker {
	return locks.NewRWLock(c, path, as[locks.RWLockOption](opts)...)
}

func eachInheriting(t *testing.T, test func(t *testing.T, w *world, kind inherits)) {
	for _, kind := range inheriting {
		t.Run(kind.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { test(t, w, kind) })
		})
	}
}

// held locks, which must work.
func held(t *testing.T, ctx context.Context, l locks.Locker) *locks.Lease {
	t.Helper()
	lease, err := l.Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, lease.Err())
	require.NoError(t, lease.Context().Err())
	return lease
}

// released releases, which must work.
func released(t *testing.T, leases ...*locks.Lease) {
	t.Helper()
	for _, l := range leases {
		require.NoError(t, l.Release(t.Context()))
		require.ErrorIs(t, l.Err(), locks.ErrReleased)
	}
}

// ephemerals are all nodes that live with a session.
func (w *world) ephemerals() (paths []string) {
	for _, n := range w.zk.Tree("/") {
		if n.Stat.EphemeralOwner != 0 {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// claims are the nodes of claims that are held; each has one node more, for its guard.
func (w *world) claims() (paths []string) {
	all := w.ephemerals()
	for _, path := range all {
		if !strings.HasSuffix(path, "-hold") {
			paths = append(paths, path)
		}
	}
	require.Len(w.t, all, 2*len(paths))
	return paths
}

// nothingLeft checks that no contender, no permit and no claim is left, and no watch but shared
// ones on nodes that still exist.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	time.Sleep(time.Second)
	require.Empty(t, w.ephemerals())
	seen := map[zktest.Watch]bool{}
	for _, watch := range w.zk.Watches() {
		_, exists := w.zk.Node(watch.Path)
		require.True(t, exists, "a watch on %s", watch.Path)
		require.False(t, seen[watch], "a second watch on %s", watch.Path)
		seen[watch] = true
	}
}

// requests is how many requests the server has got, but for proofs of life.
func (w *world) requests() (n int64) {
	for op, count := range w.zk.Requests() {
		if op != zktest.OpPing && op != zktest.OpMulti && op != zktest.OpSync {
			n += count
		}
	}
	return n
}

// refusedSoon waits until a deadline in vain, tries in vain, and leaves nothing.
func refusedSoon(t *testing.T, l locks.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := l.Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, locks.ErrNotAcquired)
	synctest.Wait() // its nodes are deleted in the background
}
