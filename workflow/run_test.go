package workflow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestNodesOfNumberedSignals: the first of a name has the node that it had before there were
// several, and a name is read as it was written.
func TestNodesOfNumberedSignals(t *testing.T) {
	for node, want := range map[string]numbered{"signal-a": {"a", 1}, "signal2-a": {"a", 2}, "signal-2-a": {"2-a", 1},
		"signal12-2-a": {"2-a", 12}} {
		kind, of := splitNumbered(node)
		require.Equal(t, signalPrefix, kind)
		require.Equal(t, want, of)
		require.Equal(t, node, of.node(signalPrefix))
	}
	require.Equal(t, "timer3-a", numbered{"a", 3}.node(timerPrefix))
	for _, foreign := range []string{"signal1-a", "signal02-a", "signal-2", "signal2", "step2-a", "signals-a",
		"signal+2-a"} {
		kind, of := splitNumbered(foreign)
		require.True(t, kind == "" || of.number == 1, foreign)
	}
}

// TestASleepCountsOnce: a run that has nearly as many sleeps as it may have uses them again each
// time its function is called.
func TestASleepCountsOnce(t *testing.T) {
	state := &runState{timers: map[numbered]time.Time{}, used: map[numbered]bool{}, begun: maxTimers - 1}
	for i := range maxTimers - 1 {
		state.timers[numbered{fmt.Sprint(i), 1}] = time.Now()
	}
	for name := range state.timers {
		_, begun, err := state.useTimer(name)
		require.NoError(t, err)
		require.True(t, begun)
	}
	_, begun, err := state.useTimer(numbered{"one more", 1})
	require.NoError(t, err)
	require.False(t, begun)
	_, _, err = state.useTimer(numbered{"one too many", 1})
	require.ErrorIs(t, err, framework.ErrTooLarge)
}
