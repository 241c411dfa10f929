package framework_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/link"
)

// TestTheTablesOfScale computes the tables of docs/scale.md from the interval of heartbeats.
func TestTheTablesOfScale(t *testing.T) {
	page, err := os.ReadFile("../docs/scale.md")
	require.NoError(t, err)

	var load []string
	for _, clients := range []int{1_000, 10_000, 100_000} {
		for _, holding := range []int{0, 10, 100} {
			load = append(load, loadRow(clients, holding, framework.Config{}.WithDefaults().SessionTimeout))
		}
	}
	load = append(load, loadRow(100_000, 100, 40*time.Second), loadRow(100_000, 100, 2*time.Minute))
	require.Contains(t, string(page), strings.Join(load, "\n")+"\n")

	var memory []string
	for _, what := range []struct {
		name                              string
		sessions, locks, waiters, watches int
	}{
		{"10,000 clients that do nothing", 10_000, 0, 0, 0},
		{"10,000 clients in the line of one lock", 10_000, 1, 9_999, 9_999},
		{"10,000 clients with 10 locks each", 10_000, 100_000, 0, 100_000},
		{"100,000 clients with 10 locks each", 100_000, 1_000_000, 0, 1_000_000},
	} {
		heap := what.sessions*sessionHeap + what.locks*directoryHeap + (what.locks+what.waiters)*placeHeap +
			what.watches*watchHeap
		memory = append(memory, fmt.Sprintf("| %s | %s | %s | %.0f MB |", what.name, grouped(2*what.locks+what.waiters),
			grouped(what.watches), float64(heap)/1e6))
	}
	require.Contains(t, string(page), strings.Join(memory, "\n")+"\n")
}

// Bytes of heap on each server of version 3.8, from class histograms before and after 200,000 of
// each.
const (
	sessionHeap   = 3_500 // with its connection
	directoryHeap = 460   // of a lock
	placeHeap     = 790   // the node of a holder or a waiter
	watchHeap     = 350
)

// logBytes is what a heartbeat adds to each server's transaction log.
const logBytes = 150

// loadRow is what clients of which some hold cost an ensemble.
func loadRow(clients, holdingPercent int, timeout time.Duration) string {
	holding := clients * holdingPercent / 100
	writes := float64(holding) / framework.HeartbeatInterval(timeout).Seconds()
	const day = 86_400
	rollover := "none"
	if writes > 0 {
		rollover = fmt.Sprintf("%.0f days", math.MaxUint32/writes/day)
	}
	pings := 2 * float64(clients) / link.PingInterval(timeout).Seconds()
	return fmt.Sprintf("| %s | %s | %.0f s | %s | %s | %s | %s |",
		grouped(clients), grouped(holding), timeout.Seconds(), grouped(int(math.Round(writes))),
		grouped(int(math.Round(pings))), gigabytes(writes*logBytes*day), rollover)
}

func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }

// grouped writes a number with a comma after each three digits.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
