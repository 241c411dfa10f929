// Command pipeline shows work that survives the crash of its workers. It starts an in-memory ZooKeeper and some workers, each a
// process of its own. An elected leader plans each phase's items into a queue, all workers take items, a double barrier ends the
// phase, and the leader reports the sum of the last phase's results. Meanwhile workers are killed with SIGKILL, the leader first and
// then random ones, and replaced. The sum is still right. With --for or --rounds it runs many rounds.
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
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	runtime.LockOSThread() // workers are killed when the thread that starts them ends
	if text := os.Getenv(jobVariable); text != "" {
		os.Exit(work(text))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run returns the exit status: 0 only if the sum is right and all kills were done.
func run(ctx context.Context, args []string) int {
	return demo.ExitStatus("pipeline", perform(ctx, args))
}

func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	j := newJournal(o)
	keep, closeEvents, err := keepEvents(o.events)
	if err != nil {
		return err
	}
	j.note = keep
	if err := errors.Join(play(ctx, o, j), closeEvents()); err != nil {
		return err
	}
	if o.json {
		err = j.writeJSON(os.Stdout)
	} else {
		j.writeReport()
	}
	return errors.Join(err, j.verdict())
}

// play runs the workers, kills and replaces some, and reads the leader's report.
func play(ctx context.Context, o options, j *journal) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.patience(), errors.New("the workers take too long"))
	defer cancel()
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	o.Until = time.Now().Add(o.lasts)
	j.log(time.Now(), " ", "%d workers on %s, below %s, session timeout %v", o.Workers, env.Name(), env.Config.Root, o.timeout)
	c, err := newCrew(o.Workers, o.spared, demo.Environment(env.Config, o.job.variable(), watchdogVariable+"="+strconv.FormatBool(o.watchdog)))
	if err != nil {
		return err
	}
	defer c.stop()
	begin := time.Now()
	if err := act(ctx, o, c, j); err != nil {
		return err
	}
	j.took = time.Since(begin)
	j.reported, err = lastReport(ctx, env.Client)
	return err
}

// act runs the workers until all have ended, and kills some in each round at random moments.
func act(ctx context.Context, o options, c *crew, j *journal) error {
	var f fate
	pulses := time.NewTicker(pulse)
	defer pulses.Stop()
	for c.alive() > 0 {
		select {
		case e := <-c.events:
			j.take(e)
			again, err := c.heed(e)
			if err != nil {
				return err
			}
			if again != "" {
				j.log(time.Now(), j.style.Green("+"), "%s replaces it", again)
			}
		case <-pulses.C:
			j.note(measure())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("interrupted; all workers were stopped")
			}
			return context.Cause(ctx)
		}
		f.strike(o, c, j)
	}
	return nil
}

// fate is when workers are killed in a round: after how many results.
type fate struct {
	round   int
	moments []int
}

// strike kills a worker if it is time.
func (f *fate) strike(o options, c *crew, j *journal) {
	if j.round > f.round {
		late := make([]int, len(f.moments)) // overdue kills happen at once
		f.round, f.moments = j.round, append(late, moments(o.kills, o.total())...)
		j.asked += o.kills
	}
	if len(f.moments) > 0 && j.progress() >= f.moments[0] {
		if victim := c.victim(j.leads, len(j.kills) == 0); victim != "" && c.kill(victim) {
			j.killed(victim, time.Now())
			f.moments = f.moments[1:]
		}
	}
}
