package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	memberVariable   = "CLUSTER_MEMBER"   // set: this process is a member
	watchdogVariable = "CLUSTER_WATCHDOG" // whether members have a watchdog
	clusterPath      = "/cluster"
	jobName          = "heartbeat"
	jobSpec          = "* * * * * *"
)

// serve is the part that a service would have: a client, a job, and a scheduler that runs the job each second in one member of the
// cluster. LOCKSTEP_SERVERS and further variables configure the client.
func serve(ctx context.Context, tell func(event)) error {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	options := []framework.Option{framework.WithLogger(slog.New(slog.DiscardHandler))}
	if os.Getenv(watchdogVariable) == "true" {
		options = append(options, framework.WithWatchdog()) // main begins with framework.WatchdogMain
	}
	client, err := framework.Connect(ctx, config, options...)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session expires otherwise

	cluster := scheduler.New(client, clusterPath, scheduler.WithObserver(func(e scheduler.Event) { tell(report(e)) }))
	err = cluster.Add(scheduler.Job{
		Name: jobName,
		Spec: jobSpec,
		Run: func(ctx context.Context, run scheduler.Run) error {
			tell(event{Kind: fired, Tick: run.Tick, Token: run.Token})
			return nil
		},
	})
	if err != nil {
		return err
	}
	return cluster.Run(ctx)
}

// event is a line of JSON from a member to its parent.
type event struct {
	Kind   kind             `json:"kind"`
	Member string           `json:"member"`
	At     time.Time        `json:"at"`
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

// report selects the events that the parent reads.
func report(e scheduler.Event) event {
	switch e.Kind {
	case scheduler.EventLeading:
		return event{Kind: leading, Token: e.Run.Token}
	case scheduler.EventFollowing:
		return event{Kind: following, Token: e.Run.Token}
	case scheduler.EventMissed:
		return event{Kind: missed, Tick: e.Gap.From, Count: e.Gap.Count, Reason: e.Gap.Reason}
	}
	return event{}
}

// member is the main function of a member's process. It runs until its parent closes its standard input, or dies.
func member() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // Ctrl-C reaches all processes; the parent decides
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // errors end it, too
		cancel()
	}()
	name := os.Getenv(framework.EnvIdentity)
	var mu sync.Mutex
	lines := json.NewEncoder(os.Stdout)
	tell := func(e event) {
		if e.Kind == "" {
			return
		}
		e.Member, e.At = name, time.Now()
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(e) // fails without a parent
	}
	if err := serve(ctx, tell); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
