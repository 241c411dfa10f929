package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestClaimIsRetriedAfterLostSession: it once failed with the end of a context that was not the
// caller's.
func TestClaimIsRetriedAfterLostSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		_, err := m.Client.Session(t.Context())
		require.NoError(t, err)
		m.Link.Delay(2 * timeout)
		granted := make(chan *locks.Lease, 1)
		go func() {
			l, err := locks.NewClaim(m.Client, "/m/claim").Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			granted <- l
		}()
		time.Sleep(3 * timeout)
		m.Link.Delay(0)
		l := <-granted
		require.NotNil(t, l)
		require.NoError(t, l.Err())
		require.Greater(t, w.zk.Zxid(), int64(0))
	})
}

// TestAMultiLockEndsBeforeAPartHasItsNextHolder has a part end alone, whose next holder is a
// goroutine of the same client: it is told in memory.
func TestAMultiLockEndsBeforeAPartHasItsNextHolder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		for range 100 {
			bounded := locks.NewMutex(c, "/m/b", locks.WithMaxHold(time.Second))
			both, err := locks.NewMultiLock(locks.NewMutex(c, "/m/a"), bounded).Lock(t.Context())
			require.NoError(t, err)
			next, err := locks.NewMutex(c, "/m/b").Lock(t.Context())
			require.NoError(t, err)
			select {
			case <-both.Context().Done():
			default:
				t.Fatal("two hold /m/b")
			}
			require.NoError(t, next.Release(t.Context()))
			require.NoError(t, both.Release(t.Context()))
		}
	})
}
