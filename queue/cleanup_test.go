package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/testkit/cleanuptest"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestCloseIsACleanup(t *testing.T) {
	for name, order := range map[string]Order{"parallel": Parallel, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			cleanuptest.Cleanup{NextSession: true,
				Begin: func(t *testing.T, m *zktest.Member) func(context.Context) error {
					q := New(m.Client, testPath, codec.Text(), WithOrder(order))
					require.NoError(t, q.Put(t.Context(), "x"))
					_, err := q.Take(t.Context())
					require.NoError(t, err)
					return q.Close
				}}.Check(t)
		})
	}
}
