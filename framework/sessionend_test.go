package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestEndedSessionDeletesNoSingleNode: other clients must see all nodes of a session go at once, or
// they act on a node that is gone while the rest still stands.
func TestEndedSessionDeletesNoSingleNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/place", nil, framework.Ephemeral))
		require.NoError(t, s.Create(t.Context(), "/ticket", nil, framework.Ephemeral))
		require.NoError(t, s.Create(t.Context(), "/former", nil, framework.Ephemeral))
		deletions := 0
		zk.Observe(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpDelete && r.Path == "/place" {
				deletions++
			}
		})
		var discarded primitives.Discarded
		context.AfterFunc(s.Context(), func() { discarded = primitives.Of(s).Discard(nil, "/place") })
		m.Link.Delay(100 * time.Millisecond)
		primitives.Of(s).Discard(nil, "/former") // Close waits for it, so that the other deletion could still be sent
		require.NoError(t, m.Client.Close(t.Context()))
		synctest.Wait()
		<-discarded.Done()
		require.Zero(t, deletions)
		require.Equal(t, []string{"zookeeper"}, zk.Children("/"))
	})
}

// TestEndedSessionHasNoLease: a session that a server has expired, or that was closed, has no time
// left, although its last proof of life would last longer.
func TestEndedSessionHasNoLease(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *zktest.Server, *zktest.Member, int64){
		"expired": func(t *testing.T, zk *zktest.Server, _ *zktest.Member,
			id int64) {
			require.NoError(t, zk.Expire(framework.SessionID(id)))
		},
		"closed": func(t *testing.T, _ *zktest.Server, m *zktest.Member, _ int64) {
			require.NoError(t, m.Client.Close(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", config)
				s := session(t, m)
				node := createOwn(t, s, "/held")
				_, err := primitives.Of(s).Hold(t.Context(), node)
				require.NoError(t, err)
				require.Positive(t, s.LeaseRemaining())
				end(t, zk, m, int64(s.ID()))
				<-s.Done()
				require.Zero(t, s.LeaseRemaining())
			})
		})
	}
}
