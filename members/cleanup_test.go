package members_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cleanuptest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestLeaveIsACleanup(t *testing.T) {
	cleanuptest.Cleanup{Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
		joined, err := members.New(m.Client, path).Join(t.Context(), "a", members.Info{})
		require.NoError(t, err)
		return joined.Leave
	}}.Check(t)
}
