package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestConsumerLeavesLineAfterItHasGivenBack: rule 3. The recoverer would miss a ticket that goes
// later than its consumer's place.
func TestConsumerLeavesLineAfterItHasGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recoverer, b, p := w.member("recoverer"), w.member("b"), w.member("p")
		p.put("x", "y")
		busy := recoverer.take()
		number := b.take().Node()
		number = number[strings.LastIndex(number, "-"):]
		got := recoverer.takeInBackground()
		time.Sleep(time.Second)
		b.link.Delay(slow)
		var tickets []string
		left := make(chan struct{})
		w.beforeRequest(b, zktest.OpDelete, testPath+"/lock/", func() {
			tickets = w.Children(testPath + "/tickets/items/0000000000")
			close(left)
		})
		b.closeSlowly()
		<-left
		for _, ticket := range tickets {
			require.False(t, strings.HasSuffix(ticket, number), "its ticket for %s is there", number)
		}
		again := <-got
		require.Equal(t, "y", again.Value)
		recoverer.ack(again)
		recoverer.ack(busy)
	})
}
