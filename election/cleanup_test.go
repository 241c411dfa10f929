package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestResignIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		term, err := election.New(m.Client, path).Campaign(t.Context())
		require.NoError(t, err)
		return term.Resign
	}}.Check(t)
}

// TestLeadGivesUpAfterTheEndOfItsContext, and waits for the servers.
func TestLeadGivesUpAfterTheEndOfItsContext(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		within, end := context.WithCancel(t.Context())
		began, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- election.New(m.Client, path).Lead(within, func(ctx context.Context, _ *election.Term) error {
				close(began)
				<-ctx.Done()
				return nil
			})
		}()
		<-began
		return func(context.Context) error {
			end()
			return <-done
		}
	}}.CheckConfirmed(t)
}

// TestACampaignFailsThoughItsNodeStays: the election's record cannot be read, and the servers
// refuse to delete the candidate's node.
func TestACampaignFailsThoughItsNodeStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		withoutDelete := config
		const perms = framework.PermAll &^ framework.PermDelete
		withoutDelete.ParentACL = []framework.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
		m := w.Member(t, "a", withoutDelete)
		dir, _ := znode.Split(path)
		require.NoError(t, m.MakeDirs(t.Context(), dir))
		require.NoError(t, m.Create(t.Context(), path+"~term", []byte("x"), framework.Persistent))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := election.New(m.Client, path).Campaign(ctx)
		require.ErrorIs(t, err, framework.ErrBadRecord)
	})
}
