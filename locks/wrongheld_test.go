package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestAWrongRecordThatOnlyReportsHarmsNoOthers: the request with the wrong list is in the mode that
// fails no request, so it reports the deadlock that it makes up, and the others wait on.
func TestAWrongRecordThatOnlyReportsHarmsNoOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c := w.member("a").Client, w.member("c").Client
		la := held(t, t.Context(), locks.NewMutex(a, "/locks/a"))
		lc := held(t, t.Context(), locks.NewMutex(c, "/locks/c"))
		wrong, err := locks.WithHeldLocks(t.Context(), locks.HeldLocks(lc.Context()))
		require.NoError(t, err)
		liar := waitsOn(wrong, locks.NewMutex(w.member("liar").Client, "/locks/a",
			locks.WithDeadlockMode(locks.DeadlockReport)))
		time.Sleep(100 * time.Millisecond)
		younger := lockUnder(la, locks.NewMutex(a, "/locks/c"))
		time.Sleep(timeout)
		require.Empty(t, younger)
		require.NoError(t, lc.Release(t.Context()))
		require.NoError(t, (<-younger).err)
		require.NoError(t, la.Release(t.Context()))
		require.NoError(t, (<-liar).err)
	})
}
