package locks_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestTokensRiseBeyondTheirDirectory: numbers in line begin anew with a directory that was removed,
// and after 2^31 they are negative. Tokens rise all the same.
func TestTokensRiseBeyondTheirDirectory(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("m")
		last := int64(0)
		for range 3 {
			for range 5 {
				l := lock(t, m.Client)
				require.Greater(t, l.Token(), last)
				last = l.Token()
				require.NoError(t, l.Release(t.Context()))
			}
			w.zk.Reap()
			_, there := w.zk.Node(path)
			require.False(t, there)
		}
		l := lock(t, m.Client)
		require.NoError(t, w.zk.Number(path, 1<<31-2))
		require.NoError(t, l.Release(t.Context()))
		for range 5 {
			l := lock(t, m.Client)
			require.Greater(t, l.Token(), last)
			last = l.Token()
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// TestPermitsAreTakenAtTheirPresentNumber has the number fall at any moment of a slow request: who
// has seen room before takes none after.
func TestPermitsAreTakenAtTheirPresentNumber(t *testing.T) {
	resizedFirst, takenFirst := 0, 0
	for step := range 30 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t, zktest.Start(t)}
			slow, quick := w.member("slow"), w.member("quick")
			held, err := locks.NewSemaphore(quick.Client, pool, 2).Lock(t.Context())
			require.NoError(t, err)
			slow.Link.Delay(500 * time.Millisecond)
			var mu sync.Mutex
			var done []string
			stop := w.zk.Observe(func(r zktest.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Err != 0 || slices.ContainsFunc(r.Parts, func(p zktest.Request) bool { return p.Err != 0 }) {
					return
				}
				for _, p := range append(r.Parts, r) {
					switch {
					case strings.Contains(p.Result, "/leases/"):
						done = append(done, "taken")
					case p.Op == zktest.OpSetData && strings.HasPrefix(p.Path, pool):
						done = append(done, "resized")
					}
				}
			})
			defer stop()
			asked := make(chan error, 1)
			go func() {
				l, err := locks.NewSemaphore(slow.Client, pool, 2).Lock(t.Context())
				if err == nil {
					err = l.Release(t.Context())
				}
				asked <- err
			}()
			time.Sleep(time.Duration(step) * 200 * time.Millisecond)
			require.NoError(t, locks.NewSemaphore(quick.Client, pool, 2).SetLimit(t.Context(), 1))
			time.Sleep(20 * time.Second)
			mu.Lock()
			order := strings.Join(done, " ")
			mu.Unlock()
			switch order {
			case "resized":
				resizedFirst++
			case "taken resized":
				takenFirst++
			default:
				t.Errorf("step %d: %s", step, order)
			}
			require.NoError(t, held.Release(t.Context()))
			require.NoError(t, <-asked)
		})
	}
	require.Greater(t, resizedFirst, 4)
	require.Greater(t, takenFirst, 4)
}
