package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// grantedTimeout is the session timeout that the servers have granted.
func grantedTimeout(env *demo.Env) time.Duration {
	session, err := env.Client.Session(context.Background())
	if err != nil {
		return env.Config.SessionTimeout
	}
	return session.Timeout()
}

// awaitCatchUp waits until the stored state counts every tick that is due by now, and returns the
// state.
func awaitCatchUp(ctx context.Context, client *framework.Client, members *demo.Children[event],
	j *recorder) (scheduler.State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*j.timeout+time.Minute,
		errors.New("the members have not caught up with the clock"))
	defer cancel()
	cluster := scheduler.New(client, clusterPath)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case received := <-members.Events:
			if err := j.record(received); err != nil {
				return scheduler.State{}, err
			}
		case <-poll.C:
			state, err := cluster.State(ctx, jobName)
			if err == nil && state.Running == nil && due(state, time.Now()) == due(state, state.Last) {
				return state, nil
			}
		case <-ctx.Done():
			return scheduler.State{}, context.Cause(ctx)
		}
	}
}
