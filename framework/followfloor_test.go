package framework

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnOlderStateOfANodeIsRefused: a server may answer behind a sync with an older state all the
// same, if its leader was replaced and does not know.
func TestAnOlderStateOfANodeIsRefused(t *testing.T) {
	value := func(zxid int64, version int32) NodeValue {
		return NodeValue{Exists: true, Zxid: zxid, Stat: Stat{Mzxid: zxid, Version: version}}
	}
	var log strings.Builder
	n := &followedNode{all: &followedNodes{log: slog.New(slog.NewTextHandler(&log, nil))}, changed: make(chan struct{})}
	for i, step := range []struct {
		value          NodeValue
		taken, changes bool
	}{
		{value(5, 3), true, true},
		{value(5, 3), true, false},
		{value(4, 9), false, false},
		{NodeValue{Zxid: 4}, false, false},
		{value(7, 0), true, true}, // it was created anew
		{NodeValue{Zxid: 9}, true, true},
		{NodeValue{Zxid: 11}, true, false},
		{value(10, 4), false, false},
		{value(12, 0), true, true},
	} {
		before := n.changes
		require.Equal(t, step.taken, n.publishValue(step.value, readCounts{}), "step %d", i)
		require.Equal(t, step.changes, n.changes > before, "step %d", i)
	}
	require.Equal(t, 2, strings.Count(log.String(), "older state"), "the first of several")
}
