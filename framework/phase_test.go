package framework_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestHeartbeatsAfterACommonEventAreSpread has many clients hold at one moment, long after they
// have connected, and then connect again at one moment. From one session timeout after each event
// on, no twentieth of the interval between heartbeats has more than twice its share of them.
func TestHeartbeatsAfterACommonEventAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, parts = 200, 20
		zk := zktest.Start(t)
		var members []*zktest.Member
		var sessions []*framework.Session
		for i := range clients {
			members = append(members, zk.Member(t, fmt.Sprint(i), sleepy))
			sessions = append(sessions, session(t, members[i]))
		}
		interval := framework.HeartbeatInterval(timeout)
		requireSpread := func(event string) {
			t.Helper()
			time.Sleep(timeout)
			var mu sync.Mutex
			began := time.Now()
			var heartbeats [2 * parts]int
			stop := zk.Observe(func(r zktest.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Op == zktest.OpMulti {
					heartbeats[int(time.Since(began)*parts/interval)]++
				}
			})
			time.Sleep(2*interval - time.Nanosecond)
			stop()
			for part, n := range heartbeats {
				require.LessOrEqual(t, n, 2*clients/parts, "%s: part %d of %v", event, part, heartbeats)
			}
		}
		time.Sleep(timeout)
		for i, s := range sessions {
			held(t, s, fmt.Sprint("/held-", i))
		}
		requireSpread("holds")
		for _, m := range members {
			m.Link.Reset()
		}
		requireSpread("connections")
		for _, s := range sessions {
			require.Positive(t, s.LeaseRemaining())
		}
	})
}
