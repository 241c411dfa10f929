package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/itself"
)

func TestTheWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	itself.RequireChildrenEnd(t, []string{"--effort", "1m"}, "plans", func(workers map[int]itself.State) {
		require.Len(t, workers, 4)
	})
}
