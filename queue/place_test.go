package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestAConsumerStandsInLineUntilItHasGivenBack: rule 3. What goes with its session after that is missed by nobody.
func TestAConsumerStandsInLineUntilItHasGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		clerk, b, p := w.member("clerk"), w.member("b"), w.member("p")
		p.put("x", "y")
		busy := clerk.take()
		d := b.take()
		got := clerk.taking()
		time.Sleep(time.Second)
		b.link.Delay(slow)
		w.upon(b, zktest.OpDelete, testPath+"/lock/", func() { b.link.Cut() })
		_ = b.Close(within(t, 3*time.Second))
		_ = b.client.Close(t.Context()) // the process has gone
		time.Sleep(time.Minute)
		select {
		case again := <-got:
			require.Equal(t, d.Value, again.Value)
			clerk.ack(again)
		default:
			t.Errorf("%s is nobody's: tickets %v", d.Value, w.Children(testPath+"/tickets/0000000000"))
			p.put("z")
			<-got
		}
		clerk.ack(busy)
	})
}
