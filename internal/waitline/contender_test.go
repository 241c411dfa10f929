package waitline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestContenderLeavesItsLocalWaitersOnce: a semaphore's contender leaves when its permits are granted, and again when the session ends right
// after that. The second time must not end another contender's use of the local waiters.
func TestContenderLeavesItsLocalWaitersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := zktest.Start(t).Member(t, "a", framework.Config{SessionTimeout: 6 * time.Second}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		l := New("/a", Filter{Kind: Mutex}, nil)
		first, second := l.newContender(s), l.newContender(s)
		first.WakeNext()
		first.WakeNext()
		require.Same(t, second.siblings, l.newContender(s).siblings, "they are still in use")
	})
}
