package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestAContenderLeavesItsRowOnce: a semaphore's contender leaves when its permits are granted, and is given up when
// the session is over right after that. The second time once ended another contender's use of the local waiters, or panicked.
func TestAContenderLeavesItsRowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := zktest.Start(t).Member(t, "a", framework.Config{SessionTimeout: 6 * time.Second}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		l := NewMutex(client, "/a").line
		first, second := newContender(l, s), newContender(l, s)
		first.leaveLocalWaiters()
		first.leaveLocalWaiters()
		require.Same(t, second.local, newContender(l, s).local, "it is still in use")
	})
}
