package election_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/cleanuptest"
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
			if err := <-done; !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}
	}}.CheckConfirmed(t)
}
