package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTicks checks what T reports. On a slow machine the members need a longer warm-up to read the
// states of their jobs, and these requests do not belong to the ticks.
func TestTicks(t *testing.T) {
	perTick := 20.0
	for warmup := 5 * time.Second; perTick >= 20; warmup *= 3 {
		require.Less(t, warmup, 2*time.Minute, "%v requests for a tick, with heartbeats, beside few ticks", perTick)
		r := measureFor(t, 2*time.Second, 1, "-w", "T", "-c", "3", "-n", "300", "-warmup", warmup.String())
		require.Equal(t, map[string]any{"c": 3.0, "jobs": 300.0}, r[0]["params"])
		require.Positive(t, r[0]["bytes_per_job"])
		perTick = r[0]["requests_per_cycle"].(float64)
	}
}
