package main

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	clusterPath = "/cluster"
	jobName     = "heartbeat"
	jobSpec     = "* * * * * *"
)

// runMember is the part that a service would have: a client, a job, and a scheduler that runs the
// job each second in one member of the cluster. LOCKSTEP_SERVERS and further variables configure
// the client.
func runMember(ctx context.Context, parent *demo.Parent) error {
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise

	cluster := scheduler.New(client, clusterPath,
		scheduler.WithOnEvent(func(e scheduler.Event) { sendEvent(parent, e) }))
	err = cluster.Add(scheduler.Job{
		Name: jobName,
		Spec: jobSpec,
		Run: func(ctx context.Context, run scheduler.Run) error {
			parent.Send(event{Kind: fired, Tick: run.Tick, Token: run.Token})
			return nil
		},
	})
	if err != nil {
		return err
	}
	return cluster.Run(ctx)
}

// event is what a member sends its parent.
type event struct {
	Kind   kind             `json:"kind"`
	Tick   time.Time        `json:"tick"`
	Token  int64            `json:"token"`
	Count  int64            `json:"count"`
	Reason scheduler.Reason `json:"reason"`
}

type kind string

const (
	leading   kind = "leading"
	following kind = "following"
	fired     kind = "fired"
	missed    kind = "missed"
)

// sendEvent sends the parent the events that it needs.
func sendEvent(parent *demo.Parent, e scheduler.Event) {
	switch e.Kind {
	case scheduler.EventLeading:
		parent.Send(event{Kind: leading, Token: e.Run.Token})
	case scheduler.EventFollowing:
		parent.Send(event{Kind: following, Token: e.Run.Token})
	case scheduler.EventMissed:
		parent.Send(event{Kind: missed, Tick: e.Gap.From, Count: e.Gap.Count, Reason: e.Gap.Reason})
	}
}
