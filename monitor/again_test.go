package monitor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
)

// TestAScanAgainIsLikeAScan: behind changes of some locks it reports what a scan of everything
// does, in the same order, and remembers since when the holders hold.
func TestAScanAgainIsLikeAScan(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		app := w.member("app")
		for _, lock := range []string{"/app/a", "/app/a/below", "/app/a-b", "/app/c", "/app/d"} {
			w.put(app, contender(lock, 0), "", framework.Ephemeral)
		}
		w.put(app, contender("/app/c", 1), "", framework.Ephemeral)
		scanner, err := monitor.NewScanner(app.Client, root, monitor.WithLongHold(time.Minute), monitor.WithWaiters(0))
		require.NoError(t, err)
		_, err = scanner.Scan(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		w.put(app, contender("/app/a", 1), "", framework.Ephemeral)
		w.put(app, contender("/app/b", 0), "", framework.Ephemeral)
		w.put(app, contender("/app/d", 1), "", framework.Ephemeral) // nobody asks for it
		w.remove(app, contender("/app/c", 1))
		again, err := moduleonly.ScanLocksAgain(t.Context(), scanner,
			[]string{"/app/a", "/app/b", "/app/c", "/app/a/below"})
		require.NoError(t, err)
		report := again.(monitor.Report)
		paths := func(all []locks.Report) (paths []string) {
			for _, r := range all {
				paths = append(paths, r.Path)
			}
			return paths
		}
		found := func(all []monitor.Finding) (found []string) {
			for _, f := range all {
				found = append(found, string(f.Problem)+" "+f.Path)
			}
			return found
		}
		require.Equal(t, []string{"many waiters /app/a", "long hold /app/a"}, found(report.Findings))
		w.remove(app, contender("/app/d", 1))
		whole, err := scanner.Scan(t.Context())
		require.NoError(t, err)
		require.Equal(t, paths(whole.Locks), paths(report.Locks))
		require.Equal(t, whole.Findings, report.Findings)
	})
}
