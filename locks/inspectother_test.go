package locks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

func TestInspectReadsCuratorNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		put(t, a, path+"/_c_00000000-0000-0000-0000-000000000001-lock-0000000007", "10.0.0.1", framework.Ephemeral)
		put(t, a, path+"/_c_00000000-0000-0000-0000-000000000002-lock-0000000008", "__REVOKE__", framework.Ephemeral)
		put(t, a, path+"/_c_00000000-0000-0000-0000-000000000000-lock-0000000009", "\xff\x00", framework.Persistent)
		put(t, a, path+"/readme", "text", framework.Persistent)
		time.Sleep(time.Hour)

		r, err := locks.Inspect(t.Context(), a, path)
		require.NoError(t, err)
		require.Equal(t, locks.MutexLock, r.Kind)
		require.Equal(t, []string{"10.0.0.1"}, data(r.Holders))
		require.Equal(t, []string{"__REVOKE__", "\xff\x00"}, data(r.Waiters), "as it is")
		require.Equal(t, []string{"text"}, data(r.Others))
		require.Equal(t, 4, r.Count)
		for _, e := range append(r.Waiters, r.Holders...) {
			require.True(t, e.Foreign)
			require.Empty(t, e.Owner)
			require.True(t, e.Since.Equal(time.Now().Add(-time.Hour)), "when the node was created")
		}
		require.Zero(t, r.Waiters[1].Session, "not ephemeral")
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}

func TestInspectCuratorsSemaphore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		require.NoError(t, a.MakeDirs(t.Context(), path+"/locks"))
		require.NoError(t, a.MakeDirs(t.Context(), path+"/leases"))
		require.Equal(t, locks.SemaphoreLock, inspect(t, a, path).Kind, "idle")
		put(t, a, path+"/leases/_c_1-lease-0000000003", "10.0.0.1", framework.Ephemeral)
		put(t, a, path+"/leases/readme", "text", framework.Persistent)
		put(t, a, path+"/locks/_c_2-lock-0000000005", "10.0.0.2", framework.Ephemeral)
		put(t, a, path+"/locks/readme", "more", framework.Persistent)
		r := inspect(t, a, path)
		require.Equal(t, locks.SemaphoreLock, r.Kind)
		require.Zero(t, r.Permits, "no record")
		require.Equal(t, []string{"10.0.0.1"}, data(r.Holders))
		require.Equal(t, []string{"10.0.0.2"}, data(r.Waiters))
		require.Equal(t, []string{"text", "more"}, data(r.Others))
	})
}

// TestLocksNamedAsASemaphoresPartsAreNone has directories that look like a semaphore at first
// sight.
func TestLocksNamedAsASemaphoresPartsAreNone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		for _, name := range []string{"locks", "leases", "permits"} {
			_, err := locks.NewMutex(a, "/team/"+name).Lock(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, locks.NoLock, inspect(t, a, "/team").Kind)
		require.Equal(t, locks.MutexLock, inspect(t, a, "/team/leases").Kind)
	})
}

func TestInspectClaimElectionAndMissingPath(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		l, err := locks.NewClaim(a, "/claims/x").Lock(t.Context())
		require.NoError(t, err)
		r := inspect(t, a, "/claims/x")
		require.Equal(t, locks.ClaimLock, r.Kind)
		require.Equal(t, []string{"a"}, owners(r.Holders))
		require.Equal(t, l.Token(), r.Holders[0].Token)
		require.Equal(t, locks.NoLock, inspect(t, a, "/claims").Kind)

		put(t, a, "/e/_c_1-latch-0000000001", "me", framework.Ephemeral)
		put(t, a, "/e/_c_2-latch-0000000002", "", framework.Ephemeral)
		r = inspect(t, a, "/e")
		require.Equal(t, locks.ElectionLock, r.Kind)
		require.Equal(t, []string{"me"}, owners(r.Holders))
		require.Equal(t, []string{""}, owners(r.Waiters))

		for _, nothing := range []string{"/none", "/claims/x/below", "/"} {
			require.Equal(t, locks.NoLock, inspect(t, a, nothing).Kind)
		}
	})
}

func TestInspectKazoosLocks(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		hex := strings.Repeat("0123456789abcdef", 2)
		put(t, a, "/k/"+hex+"__rlock__0000000001", "r1", framework.Ephemeral)
		put(t, a, "/k/"+hex+"__rlock__0000000002", "r2", framework.Ephemeral)
		put(t, a, "/k/"+hex+"__lock__0000000003", "w", framework.Ephemeral)
		put(t, a, "/k/"+hex+"__lock__", "odd", framework.Ephemeral)
		r := inspect(t, a, "/k")
		require.Equal(t, locks.KazooLock, r.Kind)
		require.Equal(t, []string{"r1", "r2"}, data(r.Holders))
		require.Equal(t, []string{"w"}, data(r.Waiters))
		require.Equal(t, []string{"odd"}, data(r.Others))

		put(t, a, "/k/_c_1-lock-0000000009", "10.0.0.1", framework.Ephemeral)
		r = inspect(t, a, "/k")
		require.Equal(t, locks.MixedLock, r.Kind)
		require.Equal(t, []string{"10.0.0.1", "r1", "r2"}, data(r.Holders), "each kind has a holder")
	})
}
