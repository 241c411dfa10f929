package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestAMutexAndAZKLockExcludeEachOther: go-zookeeper's zk.Lock and Mutex share a path, in both
// orders.
func TestAMutexAndAZKLockExcludeEachOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mutex := locks.NewMutex(w.member("a").Client, "/orders/42")
		conn, _, err := zk.Connect(w.zk.Servers(), 10*time.Second, zk.WithDialer(w.zk.Link("other").Dial),
			zk.WithLogInfo(false))
		require.NoError(t, err)
		defer conn.Close()
		other := zk.NewLock(conn, "/orders/42", zk.WorldACL(zk.PermAll))

		lease := held(t, t.Context(), mutex)
		locked := make(chan error, 1)
		go func() { locked <- other.Lock() }()
		synctest.Wait()
		require.Empty(t, locked, "the zk.Lock waits for the mutex")
		released(t, lease)
		require.NoError(t, <-locked)

		_, err = mutex.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		granted := make(chan *locks.Lease, 1)
		go func() {
			lease, err := mutex.Lock(t.Context())
			if err == nil {
				granted <- lease
			}
			close(granted)
		}()
		synctest.Wait()
		require.Empty(t, granted, "the mutex waits for the zk.Lock")
		require.NoError(t, other.Unlock())
		lease = <-granted
		require.NotNil(t, lease)
		released(t, lease)
	})
}
