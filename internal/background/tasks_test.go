package background_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/background"
)

func TestDoneWaitsForTasksOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks background.Tasks
		first, second := make(chan struct{}), make(chan struct{})
		require.True(t, tasks.Start(func() {
			<-first
			require.True(t, tasks.Start(func() { <-second }))
		}))
		done := tasks.Done()
		close(first)
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("done before the second task has ended")
		default:
		}
		close(second)
		<-done
		require.False(t, tasks.Start(func() { t.Error("it runs after all have ended") }))
		require.False(t, tasks.Begin())
		<-tasks.Done()
	})
}

func TestDoneWithoutTasksEndsAtOnce(t *testing.T) {
	var tasks background.Tasks
	<-tasks.Done()
	require.False(t, tasks.Begin())
}
