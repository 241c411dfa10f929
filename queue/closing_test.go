package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
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

// TestACloseLeavesNothingOfItsSession: a session that was lost here may live on for the servers, and its node below the
// marker with it.
func TestACloseLeavesNothingOfItsSession(t *testing.T) {
	for name, former := range map[string]bool{"alone": false, "beside a former session": true} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				a.put("x")
				markers := w.Children(testPath + "/writers")
				require.Len(t, markers, 1)
				marker := testPath + "/writers/" + markers[0]
				if former {
					require.NoError(t, b.client.Create(t.Context(), marker+"/former", nil, framework.Ephemeral))
				}
				require.NoError(t, a.Close(t.Context()))
				if former {
					require.Equal(t, []string{"former"}, w.Children(marker))
					require.NoError(t, b.client.Close(t.Context()))
					time.Sleep(2 * time.Minute)
				}
				require.Empty(t, w.Children(testPath+"/writers"))
			})
		})
	}
}
