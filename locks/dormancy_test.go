package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestRequestCancelledWhileSessionWakesLeavesNoNodes ends asks at many moments of the first
// acquisition after an idle hour.
func TestRequestCancelledWhileSessionWakesLeavesNoNodes(t *testing.T) {
	for at := range 30 {
		in(t, func(t *testing.T, w *world) {
			a := w.member("a")
			for _, acquire := range []func(context.Context) (*locks.Lease, error){
				locks.NewSemaphore(a.Client, "/semaphore", 2).Lock,
				locks.NewMutex(a.Client, "/mutex").Lock,
				locks.NewClaim(a.Client, "/claims/claim").Lock,
			} {
				time.Sleep(time.Hour)
				a.Link.Delay(10 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(at)*10*time.Millisecond)
				lease, err := acquire(ctx)
				if err == nil {
					require.Positive(t, lease.Remaining(), "granted without a lease of the session")
					require.NoError(t, lease.Release(t.Context()))
				}
				cancel()
				a.Link.Delay(0)
				time.Sleep(time.Minute)
				w.nothingLeft(t)
			}
		})
	}
}
