package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	r := measureFor(t, 2*time.Second, 1, "-w", "T", "-c", "3", "-n", "300", "-warmup", "1s")
	require.Equal(t, map[string]any{"c": 3.0, "jobs": 300.0}, r[0]["params"])
	require.Less(t, r[0]["requests_per_cycle"], 20.0, "proofs of life among few ticks")
	require.Positive(t, r[0]["bytes_per_job"])
}
