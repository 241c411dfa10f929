package monitor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/survey"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestFormerHoldersAreForgotten beside a directory that no scan can read. A hold that may be in
// that directory is remembered for an hour.
func TestFormerHoldersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "monitor", framework.Config{SessionTimeout: 10 * time.Second})
		owner := zk.Member(t, "owner",
			framework.Config{SessionTimeout: 10 * time.Second,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("a:b")}}})
		require.NoError(t, m.MakeDirs(t.Context(), "/locks"))
		require.NoError(t, owner.Create(t.Context(), "/locks/private", nil, framework.Persistent))
		require.NoError(t, owner.Create(t.Context(), "/locks/private/x", nil, framework.Persistent))
		s, err := newSettings(nil)
		require.NoError(t, err)
		k := newRootScanner(m.Client, "/", s)
		k.locks.resumeHold(Finding{Problem: ProblemHold, Node: "/locks/private/a/_c_x-lock-0000000000",
			Since: time.Now()})
		k.locks.resumeHold(Finding{Problem: ProblemHold, Node: "/locks/private2/a/_c_x-lock-0000000000",
			Since: time.Now()})
		mutex := locks.NewMutex(m.Client, "/locks/order")
		for scan := range 200 {
			lease, err := mutex.Lock(t.Context())
			require.NoError(t, err)
			l, err := k.scanRoot(t.Context(), time.Now())
			require.NoError(t, err)
			require.NotEmpty(t, l.unread)
			require.NoError(t, lease.Release(t.Context()))
			if scan < 100 {
				require.Len(t, k.locks.holders, 2, "the present holder, and the one that may still hold")
			}
			time.Sleep(30 * time.Second)
		}
		require.Len(t, k.locks.holders, 1)
	})
}

// TestUndecidedProblemsAreForgotten: scans cannot read the root, and see each problem once. An open
// finding stays.
func TestUndecidedProblemsAreForgotten(t *testing.T) {
	s, err := newSettings(nil)
	require.NoError(t, err)
	h := newHysteresis(s)
	open := []openFinding{{Finding: Finding{Problem: ProblemWaiters, Path: "/locks/open"}, ID: "1"}}
	for scan := range 1000 {
		l := newScanResult(time.Now(), nil, &survey.Survey{})
		l.unread = []unreadPath{{survey.Locks, "/"}}
		for i := range 20 {
			l.addFinding(Finding{Problem: ProblemWaiters, Path: fmt.Sprintf("/locks/order-%d-%d", scan, i)}, "11 wait")
		}
		var changed bool
		open, changed = h.applyScan(l, open, func() string { return "2" })
		require.False(t, changed)
	}
	require.LessOrEqual(t, len(h.streaks), 20*(maxUndecided+1)+1)
	require.Len(t, open, 1)
}
