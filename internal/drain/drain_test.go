package drain_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/drain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// TestFunctionsHaveThreeQuartersOfTheStop checks the grace of a recipe in a stop with a limit.
func TestFunctionsHaveThreeQuartersOfTheStop(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{
		time.Minute: 30 * time.Second, time.Second: time.Second, 0: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			var grace time.Duration
			task := drain.NewTask(t.Context(), "work", func(ctx context.Context) {
				<-ctx.Done()
				inner, cancel := context.WithCancel(ctx)
				defer cancel()
				grace = drain.Grace(inner, own)
			})
			task.Start()
			ctx, cancel := within(40 * time.Second)
			defer cancel()
			require.NoError(t, task.Stop(ctx))
			require.Equal(t, want, grace)
		})
	}
}

func TestAnotherEndLeavesTheGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, time.Minute, drain.Grace(ctx, time.Minute))
	var grace time.Duration
	task := drain.NewTask(t.Context(), "work", func(ctx context.Context) {
		<-ctx.Done()
		grace = drain.Grace(ctx, time.Minute)
	})
	task.Start()
	require.NoError(t, task.Stop(t.Context()), "a stop without a limit")
	require.Equal(t, time.Minute, grace)
}

func TestATaskThatDoesNotEndIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		task := drain.NewTask(t.Context(), "work", func(context.Context) { <-release })
		task.Start()
		ctx, cancel := within(40 * time.Second)
		defer cancel()
		err := task.Stop(ctx)
		require.ErrorIs(t, err, drain.ErrUnfinished)
		require.EqualError(t, err, "work: it has not ended within 35s of the stop")
		ended, end := context.WithCancel(t.Context())
		end()
		require.False(t, task.Wait(ended))
		close(release)
		require.True(t, task.Wait(t.Context()))
	})
}

func TestATaskThatWasStoppedDoesNotStart(t *testing.T) {
	task := drain.NewTask(t.Context(), "work", func(context.Context) { panic("called") })
	require.NoError(t, task.Stop(t.Context()))
	task.Start()
	require.True(t, task.Wait(t.Context()))
}

// TestStagesStopInOrder and each part once.
func TestStagesStopInOrder(t *testing.T) {
	var order []string
	failed := errors.New("failed")
	var s drain.Sequence
	add := func(stage drain.Stage, name string, err error) {
		s.Add(stage, func(context.Context) error { order = append(order, name); return err })
	}
	add(drain.Membership, "member", nil)
	add(drain.Work, "work", failed)
	add(drain.Pool, "pool", nil)
	add(drain.Leadership, "leader", nil)
	add(drain.Background, "value", nil)
	require.ErrorIs(t, s.StopThrough(t.Context(), drain.Leadership), failed)
	require.Equal(t, []string{"pool", "work", "leader"}, order)
	require.NoError(t, s.StopAll(t.Context()))
	require.Equal(t, []string{"pool", "work", "leader", "value", "member"}, order)
}
