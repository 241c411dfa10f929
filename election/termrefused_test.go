package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// limitNodes sets how many nodes the quota of the directory of all elections permits.
func limitNodes(t *testing.T, operator *framework.Client, limit string) {
	t.Helper()
	quota := "/zookeeper/quota/elections"
	require.NoError(t, operator.MakeDirs(t.Context(), "/elections"))
	require.NoError(t, operator.MakeDirs(t.Context(), quota))
	require.NoError(t, operator.Create(t.Context(), quota+"/zookeeper_limits", []byte("countHardLimit="+limit),
		framework.Persistent))
	require.NoError(t, operator.Create(t.Context(), quota+"/zookeeper_stats", []byte("count=0,bytes=0"),
		framework.Persistent))
}

// TestACampaignFailsWhenTheQuotaRefusesItsRecord: the quota permits the candidate's node, not the
// term's record.
func TestACampaignFailsWhenTheQuotaRefusesItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
		limitNodes(t, w.member("operator").client, "3") // /elections, the election, the candidate's node
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := w.member("a")
		a.link.Delay(10 * time.Millisecond) // time passes, too, if the campaign repeats the write without pauses
		_, err := a.Campaign(ctx)
		require.ErrorIs(t, err, framework.ErrQuotaExceeded)
		require.NoError(t, ctx.Err())
		require.Empty(t, w.Children(path))
	})
}

// TestAnUpdatePausesBetweenConflicts: another client writes the record without pause.
func TestAnUpdatePausesBetweenConflicts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, other := w.member("a"), w.member("other")
		term := a.lead(t)
		stored, exists := w.Node(path + "~term")
		require.True(t, exists)
		a.link.Delay(20 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		updated := make(chan error)
		go func() { updated <- term.SetMetadata(ctx, map[string]string{"k": "v"}) }()
		var tries int
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpMulti && r.Writes() {
				tries++
			}
		})
		for ctx.Err() == nil {
			_, err := other.client.Set(t.Context(), path+"~term", stored.Data, framework.AnyVersion)
			require.NoError(t, err)
			time.Sleep(5 * time.Millisecond)
		}
		require.ErrorIs(t, got(t, updated), context.DeadlineExceeded)
		stop() // the answer to the last try may be on its way
		require.Greater(t, tries, 3)
		require.Less(t, tries, 60)
	})
}

// TestCampaignEndsWithItsContextWhileItsTermIsRecorded: the connection is lost before the record is
// read.
func TestCampaignEndsWithItsContextWhileItsTermIsRecorded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		late := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetData, Path: path + "~term"})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { _, err := a.Campaign(ctx); result <- err }()
		synctest.Wait()
		require.Len(t, w.Children(path), 1)
		require.Empty(t, result)
		a.link.Cut()
		late.Cancel()
		ended := time.Now()
		cancel()
		require.ErrorIs(t, got(t, result), context.Canceled)
		require.Equal(t, ended, time.Now())
		require.Len(t, w.Children(path), 1)
		a.link.Heal()
		time.Sleep(timeout / 2)
		require.Empty(t, w.Children(path), "it is deleted in the background")
	})
}
