package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestRoundStartingDuringWithdrawalIsEntered: the context of a waiting member ends. The member
// finds that no round has begun, and asks the servers to delete its node. The round begins before
// that request arrives. So the servers must refuse it, and both members enter.
func TestRoundStartingDuringWithdrawalIsEntered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		w.session(ms[1])
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := enter(t, ctx, bs[0])
		own := w.in() + "/" + w.Children(w.in())[0]

		looked := make(chan struct{}, 1) // the last read before the withdrawal is that of the member's own node
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpExists && r.Path == own {
				select {
				case looked <- struct{}{}:
				default:
				}
			}
		})()
		ms[0].Link.Delay(50 * time.Millisecond)
		cancel()
		<-looked
		second := enter(t, t.Context(), bs[1])
		require.True(t, second.over(), "the round begins while the answer is on its way")
		leaveAll(t, first.round(), second.round())
		w.nobody()
	})
}
