package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/testproc"
)

func TestTheMembersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	testproc.RequireChildrenEnd(t, []string{"--step", "1h"}, "begins copy-1", func(members map[int]testproc.State) {
		require.Len(t, members, 3)
	})
}
