package workflow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestASleepCountsOnce: a run that has nearly as many sleeps as it may have uses them again each
// time its function is called.
func TestASleepCountsOnce(t *testing.T) {
	st := &runState{timers: map[string]time.Time{}, used: map[string]bool{}, begun: maxTimers - 1}
	for i := range maxTimers - 1 {
		st.timers[fmt.Sprint(i)] = time.Now()
	}
	for name := range st.timers {
		_, begun, err := st.useTimer(name)
		require.NoError(t, err)
		require.True(t, begun)
	}
	_, begun, err := st.useTimer("one more")
	require.NoError(t, err)
	require.False(t, begun)
	_, _, err = st.useTimer("one too many")
	require.ErrorIs(t, err, framework.ErrTooLarge)
}
