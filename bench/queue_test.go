package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueueing(t *testing.T) {
	var ops []any
	for _, r := range measure(t, "-w", "W6", "-n", "60", "-c", "3", "-depth", "2000") {
		require.Equal(t, 60.0, r["n"])
		require.Positive(t, r["ops_per_s"])
		ops = append(ops, r["params"].(map[string]any)["op"])
	}
	require.Equal(t, []any{"put", "put background", "take", "take", "take", "take", "take", "take", "take", "take",
		"take", "take", "take", "put and take", "put and take"}, ops)
}
