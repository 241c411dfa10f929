package faults

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// contenders compete for one lock.
type contenders struct {
	name    string
	history *lockHistory
	lock    func(*framework.Client, string) locks.Locker
	shared  bool // all use one client
	rounds  []atomic.Int64
}

// contendersPerLock is the number of goroutines that compete for a lock.
const contendersPerLock = 6

func newContenders(t *testing.T) []*contenders {
	mutex := func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path) }
	semaphore := func(c *framework.Client, path string) locks.Locker { return locks.NewSemaphore(c, path, 1) }
	locks := []*contenders{
		{name: "mutex, a session each", lock: mutex},
		{name: "mutex, one session", lock: mutex, shared: true},
		{name: "semaphore, a session each", lock: semaphore},
		{name: "semaphore, one session", lock: semaphore, shared: true},
	}
	for i, lock := range locks {
		lock.history = &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)}
		lock.rounds = make([]atomic.Int64, contendersPerLock)
	}
	return locks
}

// TestLocksAfterQuorumLoss kills two of three servers until every session has ended, and restarts
// one. Without a quorum there must be no holder and no grant. With it, all contenders must be
// granted again. It has an ensemble of its own, because other tests need all servers.
func TestLocksAfterQuorumLoss(t *testing.T) {
	t.Parallel()
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{NoFsync: true, Patience: waitLimit, HeapMB: 256})}
	r := env.chooseRoles(t)
	ctx, cancel := context.WithCancel(t.Context())
	running, failed := make(chan struct{}), error(nil)
	locks := newContenders(t)
	t.Cleanup(func() {
		cancel()
		<-running
	})
	go func() {
		defer close(running)
		failed = runConcurrently(len(locks), func(i int) error { return locks[i].run(ctx, env) })
	}()
	awaitGrantsForAll(t, locks)
	require.NoError(t, env.Kill(r.leader))
	require.NoError(t, env.Kill(r.follower))
	wait(t, sessionTimeout) // the last commits arrive, and then every session ends
	require.NoError(t, checkNoHolder(locks))
	stalled := grantCount(locks)
	wait(t, sessionTimeout)
	require.NoError(t, checkNoHolder(locks))
	require.Equal(t, stalled, grantCount(locks), "a lock was granted without a quorum")
	require.NoError(t, env.Restart(r.follower))
	awaitGrantsForAll(t, locks)
	cancel()
	<-running
	require.NoError(t, failed)
	for _, lock := range locks {
		lock.history.checkGaps()
	}
}

// run lets the contenders compete until ctx ends.
func (lock *contenders) run(ctx context.Context, env *testEnv) error {
	cfg := env.clientConfig(0, 1, 2)
	var one *framework.Client
	if lock.shared {
		var err error
		if one, err = connect(lock.history.t, cfg); err != nil {
			return err
		}
	}
	return runConcurrently(contendersPerLock, func(i int) (err error) {
		c := one
		if c == nil {
			if c, err = connect(lock.history.t, cfg); err != nil {
				return err
			}
		}
		return lock.lockRepeatedly(ctx, c, i)
	})
}

// lockRepeatedly locks and releases until ctx ends.
func (lock *contenders) lockRepeatedly(ctx context.Context, c *framework.Client, i int) error {
	l := lock.lock(c, lock.history.path)
	for ctx.Err() == nil {
		lease, err := l.Lock(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", lock.name, err)
		}
		g := lock.history.addGrant(fmt.Sprintf("%s, contender %d", lock.name, i), lease)
		wait(lock.history.t, 20*time.Millisecond)
		g.release(ctx)
		lock.rounds[i].Add(1)
	}
	return nil
}

// awaitGrantsForAll waits until each contender has been granted once more.
func awaitGrantsForAll(t *testing.T, locks []*contenders) {
	t.Helper()
	for _, lock := range locks {
		for i := range lock.rounds {
			had := lock.rounds[i].Load()
			eventually(t, func() error {
				now := lock.rounds[i].Load()
				// the first may be an earlier one
				return mismatch(fmt.Sprintf("%s: two grants for contender %d", lock.name, i), now >= had+2, now-had)
			})
		}
	}
}

// checkNoHolder returns an error if a lease is alive. It reads the clock and does not wait for the
// timers of the leases, which a loaded machine delays.
func checkNoHolder(locks []*contenders) error {
	for _, lock := range locks {
		lock.history.mu.Lock()
		defer lock.history.mu.Unlock()
		for _, g := range lock.history.grants {
			if g.lease.Err() == nil {
				return fmt.Errorf("%s holds", g.name)
			}
		}
	}
	return nil
}

// grantCount returns the number of grants of all locks.
func grantCount(locks []*contenders) (grants int) {
	for _, lock := range locks {
		lock.history.mu.Lock()
		grants += len(lock.history.grants)
		lock.history.mu.Unlock()
	}
	return grants
}
