// Command pipeline shows work that survives the crash of its workers. It starts an in-memory
// ZooKeeper and some workers, each a process of its own. An elected leader plans each phase's items
// into a queue, all workers take items, a double barrier ends the phase, and the leader reports the
// sum of the last phase's results. Meanwhile workers are killed with SIGKILL, the leader first and
// then random ones, and replaced. The sum is still right. With --for or --rounds it runs many
// rounds.
//
//	go run ./examples/pipeline
//	go run ./examples/pipeline --zk host:port,host:port,host:port
//
// See lead.go and work.go for the part that a service would have.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	demo.Main("pipeline", runWorker, perform)
}

// perform returns an error if the sum is wrong or kills are missing.
func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	j := newRecorder(o)
	keep, closeEvents, err := openEventFile(o.events)
	if err != nil {
		return err
	}
	j.store = keep
	if err := errors.Join(runScenario(ctx, o, j), closeEvents()); err != nil {
		return err
	}
	if o.json {
		err = j.writeJSON(os.Stdout)
	} else {
		j.writeReport()
	}
	return errors.Join(err, j.verdict())
}

// runScenario runs the workers, kills and replaces some, and reads the leader's report.
func runScenario(ctx context.Context, o options, j *recorder) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.patience(), errors.New("the workers take too long"))
	defer cancel()
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	o.Until = time.Now().Add(o.lasts)
	j.Marked(time.Now(), " ", "%d workers on %s, session timeout %v", o.Workers, env.Name(), o.timeout)
	j.Marked(time.Now(), " ", "their nodes are below %s", env.Config.Root)
	c := newWorkerProcesses(o.spared, demo.Environment(env.Config, o.watchdog, o.job.variable()))
	defer c.Stop()
	for seat := range o.Workers {
		if _, err := c.start(seat+1, 1); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := runWorkers(ctx, o, c, j); err != nil {
		return err
	}
	j.elapsed = time.Since(begin)
	j.reported, err = lastReport(ctx, env.Client)
	return err
}

// runWorkers runs the workers until all have ended, and kills some in each round at random moments.
func runWorkers(ctx context.Context, o options, c *workerProcesses, j *recorder) error {
	var f killPlan
	pulses := time.NewTicker(statsInterval)
	defer pulses.Stop()
	for c.alive() > 0 {
		select {
		case received := <-c.Events:
			e := eventOf(received)
			j.record(e)
			again, err := c.handleEvent(e)
			if err != nil {
				return err
			}
			if again != "" {
				j.Marked(time.Now(), j.Green("+"), "%s replaces it", again)
			}
		case <-pulses.C:
			j.store(readStats())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("interrupted; all workers were stopped")
			}
			return context.Cause(ctx)
		}
		f.killIfDue(o, c, j)
	}
	return nil
}

// killPlan says when workers are killed in a round: each time as a number of results.
type killPlan struct {
	round int
	due   []int
}

// killIfDue kills a worker if a kill is due.
func (p *killPlan) killIfDue(o options, c *workerProcesses, j *recorder) {
	if j.round > p.round {
		late := make([]int, len(p.due)) // overdue kills happen at once
		p.round, p.due = j.round, append(late, drawKills(o.kills, o.total())...)
		j.wantedKills += o.kills
	}
	if len(p.due) > 0 && j.progress() >= p.due[0] {
		if victim := c.pickToKill(j.leader, len(j.kills) == 0); victim != "" && c.kill(victim) {
			j.recordKill(victim, time.Now())
			p.due = p.due[1:]
		}
	}
}
