package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testproc"
)

func TestTheWorkersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--effort", "1m"}, "plans", func(workers map[int]testproc.State) {
		require.Len(t, workers, 4)
	})
}
