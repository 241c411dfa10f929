//go:build unix

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDNextPrintsNumbersOnce(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("id", "next", "orders")
	require.Equal(t, 0, code, errs)
	require.Equal(t, "1\n", out)
	_, out, _ = s.run("id", "next", "orders", "-c", "3")
	numbers := strings.Fields(out)
	require.Len(t, numbers, 3)
	first, err := strconv.Atoi(numbers[0])
	require.NoError(t, err)
	require.Greater(t, first, 1)
	_, out, _ = s.run("id", "next", "orders", "--json")
	require.Equal(t, "/lockstep/ids/orders", decode(t, strings.TrimSpace(out))["path"])
	for _, bad := range [][]string{{"-c", "0"}, {"-c", "1000001"}, {"x"}} {
		code, _, _ = s.run(append([]string{"id", "next", "orders"}, bad...)...)
		require.Equal(t, 64, code)
	}
	code, _, errs = s.run("id", "worker", "orders")
	require.Equal(t, 65, code)
	require.Contains(t, errs, "used by something else")
	s.left()
}

func TestIDWorkerPrintsIDsOnce(t *testing.T) {
	s := newStage(t)
	seen := map[string]bool{}
	for range 3 {
		code, out, errs := s.run("id", "worker", "events", "--slots", "1", "-c", "5")
		require.Equal(t, 0, code, errs)
		for _, id := range strings.Fields(out) {
			require.False(t, seen[id])
			seen[id] = true
		}
	}
	require.Len(t, seen, 15)
	code, _, errs := s.run("id", "worker", "events")
	require.Equal(t, 65, code)
	require.Contains(t, errs, "has 1 slots")
	code, _, _ = s.run("id", "worker", "events", "--slots", "0")
	require.Equal(t, 64, code)
	s.left()
}
