package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/workflow"
)

// TestRunsOnRealServers executes runs that sleep, await a signal and have a child, by members that
// leave without a word and come again. Each effect is fenced by its token, and each step has the
// same key for each executor.
func TestRunsOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	config := framework.Config{Servers: servers, Root: "/workflow-test-" + strconv.FormatInt(time.Now().UnixNano(), 36),
		SessionTimeout: 4 * time.Second}
	connect := func(name string) *framework.Client {
		c, err := framework.Connect(ctx, config, framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err, name)
		return c
	}
	var mu sync.Mutex
	tokens := map[string]int64{} // the highest of each run
	keys := map[string]string{}  // of each step
	effect := func(run *workflow.Run, name string) func(context.Context, workflow.Key) (string, error) {
		return func(_ context.Context, key workflow.Key) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if key.Token < tokens[run.ID()] {
				return "", fmt.Errorf("token %d is below %d", key.Token, tokens[run.ID()])
			}
			tokens[run.ID()] = key.Token
			if former, ok := keys[run.ID()+"/"+name]; ok && former != key.ID {
				return "", fmt.Errorf("step %s has key %s and %s", name, former, key.ID)
			}
			keys[run.ID()+"/"+name] = key.ID
			return name, nil
		}
	}
	double, order := workflow.NewKind[int, int]("double"), workflow.NewKind[int, int]("order")
	doubled := double.Function(
		func(_ context.Context, _ *workflow.Run, n int) (int, error) { return 2 * n, nil })
	ordered := order.Function(func(ctx context.Context, run *workflow.Run, n int) (int, error) {
		for _, step := range []string{"a", "b", "c"} {
			if _, err := workflow.Step(ctx, run, step, effect(run, step)); err != nil {
				return 0, err
			}
		}
		if err := run.Sleep(ctx, "nap", time.Second); err != nil {
			return 0, err
		}
		add, err := workflow.Await[int](ctx, run, "add", 0)
		if err != nil {
			return 0, err
		}
		twice, err := double.Child(ctx, run, "twice", n)
		return twice + add, err
	}, workflow.WithRunAttempts(100, time.Second))

	working, stop := context.WithCancel(ctx)
	defer stop()
	var members sync.WaitGroup
	for m := range 3 {
		members.Go(func() {
			for life := 0; working.Err() == nil; life++ {
				client := connect(fmt.Sprint(m, "-", life))
				flows := workflow.New(client, "/flows", workflow.WithGrace(0))
				if err := flows.Register(doubled, ordered); err != nil {
					t.Error(err)
					return
				}
				within, end := context.WithTimeout(working, time.Duration(2+m)*time.Second)
				if life >= 3 {
					within, end = context.WithCancel(working)
				}
				_ = flows.Work(within)
				end()
				_ = flows.Close(context.Background())
				_ = client.Close(context.Background())
			}
		})
	}
	client := connect("starter")
	flows := workflow.New(client, "/flows")
	const runs = 20
	for n := range runs {
		id := fmt.Sprint("order-", n)
		for range 2 {
			_, err := order.Start(ctx, flows, id, n)
			require.NoError(t, err)
		}
		require.NoError(t, flows.Signal(ctx, id, "add", 1))
	}
	for n := range runs {
		result, err := order.Handle(flows, fmt.Sprint("order-", n)).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 2*n+1, result)
	}
	all, err := failure.Collect(flows.List(ctx))
	require.NoError(t, err)
	require.Len(t, all, 2*runs)
	stop()
	members.Wait()
	require.NoError(t, flows.Close(ctx))
	require.NoError(t, client.Close(ctx))
}
