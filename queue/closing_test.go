package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPutThatIsOnItsWayAsAllEndsMayBeDone: whoever ends, be it the Queue whose Close was not waited for or its client,
// a put on its way may have been done, and its error says so.
func TestAPutThatIsOnItsWayAsAllEndsMayBeDone(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, end := range map[string]func(*member){
		"queue":  func(m *member) { _ = m.Close(ended) },
		"client": func(m *member) { _ = m.client.Close(ended) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				a.put("x")
				a.link.Delay(time.Second)
				outcome := make(chan error, 1)
				go func() { outcome <- a.Put(t.Context(), "y") }()
				time.Sleep(1500 * time.Millisecond) // done, and the reply is on its way
				end(a)
				err := <-outcome
				require.ErrorIs(t, err, ErrUnknown)
				require.Equal(t, []string{"x", "y"}, b.drain(2))
			})
		})
	}
}
