package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/itself"
)

func TestTheMembersEndWithTheirParent(t *testing.T) {
	t.Parallel()
	itself.RequireChildrenEnd(t, []string{"--duration", "1h"}, "ran the tick", func(members map[int]itself.State) {
		require.Len(t, members, 3)
	})
}
