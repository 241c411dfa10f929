// Command cluster shows what happens when a leader crashes. It starts an in-memory ZooKeeper and
// three members, each a process of its own. They elect a leader, which runs a cron job each second.
// After a third of the time the leader is killed with SIGKILL and not restarted. Another member
// takes over within milliseconds, because the dead leader's watchdog closes its session. With
// -no-watchdog the servers end the session after its timeout.
//
//	go run ./examples/cluster
//	go run ./examples/cluster --zk host:port,host:port,host:port
//	go run ./examples/cluster --ui
//
// With --ui it goes on until Ctrl-C, and opens the web page of the cluster, in which further things
// go wrong: tour.go. See member.go for the part that a service would have.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	demo.Main("cluster", runMember, perform)
}

// perform returns an error if a tick ran twice or the fencing tokens did not rise.
func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	j := newRecorder(demo.NewLog(o.json))
	if err := runScenario(ctx, o, j); err != nil || o.ui {
		return err
	}
	if o.json {
		err = j.writeJSON(os.Stdout)
	} else {
		j.writeSummary()
	}
	return errors.Join(err, j.verdict())
}

// runScenario runs the members, kills the leader, and compares the stored result with the clock.
func runScenario(ctx context.Context, o options, j *recorder) (err error) {
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	j.timeout = grantedTimeout(env)
	if err := o.checkDuration(j.timeout); err != nil {
		return err
	}
	j.Marked(time.Now(), " ", "%d members on %s, session timeout %v", o.members, env.Name(), j.timeout)
	j.Marked(time.Now(), " ", "their nodes are below %s", env.Config.Root)
	if o.ui {
		closeTour, err := openTour(ctx, env, j.Log)
		if err != nil {
			return err
		}
		defer closeTour()
	}
	members := demo.NewChildren[event](demo.Environment(env.Config, o.watchdog))
	defer members.Stop()
	for n := range o.members {
		if err := members.Start(fmt.Sprintf("member-%d", n+1)); err != nil {
			return err
		}
	}
	if err := runMembers(ctx, o, members, j); err != nil || o.ui {
		return err
	}
	if j.state, err = awaitCatchUp(ctx, env.Client, members, j); err != nil {
		return err
	}
	j.stopping = true
	members.StopAndHandle(func(received demo.ChildEvent[event]) { err = errors.Join(err, j.record(received)) })
	return err
}

// runMembers runs the members for the duration of the options, and kills the leader after a third
// of it. With the page, it runs them until ctx ends.
func runMembers(ctx context.Context, o options, members *demo.Children[event], j *recorder) error {
	end, kill := time.After(o.duration), time.After(o.duration/3)
	if o.ui {
		end = nil
	}
	for {
		select {
		case received := <-members.Events:
			if err := j.record(received); err != nil {
				return err
			}
		case <-kill:
			at := time.Now()             // the next leader may lead before Kill returns here
			if !members.Kill(j.leader) { // no leader yet
				kill = time.After(50 * time.Millisecond)
				continue
			}
			j.recordKill(j.leader, at)
		case <-end:
			return nil
		case <-ctx.Done():
			if o.ui {
				return nil
			}
			return errors.New("interrupted; all members were stopped")
		}
	}
}
