package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestMain is a member of W5's election when it is started as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-member") {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// measure runs one workload on a server in memory and returns its lines.
func measure(t *testing.T, args ...string) []map[string]any {
	zk := zktest.Start(t)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var out bytes.Buffer
	stdout = &out
	defer func() { stdout = os.Stdout }()
	require.NoError(t, run(append(args, "--zk", addr)))
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, args[1], r["workload"])
		require.Positive(t, r["p50_ms"])
		require.Positive(t, r["n"])
		lines = append(lines, r)
	}
	return lines
}

func TestWorkloads(t *testing.T) {
	require.Len(t, measure(t, "-w", "W0", "-n", "30"), 4, "one for each request")

	w1 := measure(t, "-w", "W1", "-n", "50")
	require.Len(t, w1, 1)
	require.Equal(t, "lockstep", w1[0]["peer"])
	require.InDelta(t, 2, w1[0]["requests_per_cycle"], 1, "create and delete, and a beat now and then")

	w2 := measure(t, "-w", "W2", "-c", "4", "-t", "300ms", "-warmup", "100ms")
	require.Equal(t, map[string]any{"c": 4.0}, w2[0]["params"])
	require.Positive(t, w2[0]["least"])

	w4 := measure(t, "-w", "W4", "-c", "20")
	require.Equal(t, 20.0, w4[0]["n"])

	w5 := measure(t, "-w", "W5", "-how", "close")
	require.Nil(t, w5[0]["ops_per_s"])
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`no workload "W9"`: {"-w", "W9"},
		"-c -1":            {"-w", "W2", "-c", "-1"},
		`-how "nicely"`:    {"-w", "W5", "-how", "nicely"},
		"-t 0s":            {"-w", "W2", "-t", "0s"},
	} {
		require.ErrorContains(t, run(args), want)
	}
}
