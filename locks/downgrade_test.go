package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestTwoReadersInAWritersPlaceKeepAWriterOut: the next writer of their session has the next
// number, and hears of it after they have taken their place.
func TestTwoReadersInAWritersPlaceKeepAWriterOut(t *testing.T) {
	for _, first := range []string{"r1", "r2"} {
		t.Run(first+" leaves first", func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("m")
				l := locks.NewRWLock(m.Client, path)
				writer := held(t, t.Context(), l)
				m.Link.Delay(10 * time.Millisecond)
				a := newAsker(t)
				a.ask("w2", l.Lock) // its create is on the way
				go a.ask2("r1", writer, l)
				synctest.Wait()
				go a.ask2("r2", writer, l)
				time.Sleep(time.Second)
				require.ElementsMatch(t, []string{"r1", "r2"}, a.now())
				require.Len(t, w.zk.Children(path), 4)
				released(t, writer)
				time.Sleep(time.Second)
				require.Empty(t, a.now())
				a.release(first)
				time.Sleep(time.Second)
				granted := a.now()
				for _, name := range []string{"r1", "r2"} {
					if name != first {
						require.NoError(t, a.lease(name).Err())
					}
				}
				require.Empty(t, granted, "a reader holds")
			})
		})
	}
}

func (a *asker) ask2(name string, writer *locks.Lease, l *locks.RWLock) {
	r, err := l.RLock(writer.Context())
	if err != nil {
		a.granted <- name + ": " + err.Error()
		return
	}
	a.mu.Lock()
	a.leases[name] = r
	a.mu.Unlock()
	a.granted <- name
}
