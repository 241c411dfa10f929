// Command cluster shows what happens when a leader crashes. It starts an in-memory ZooKeeper and three members, each a process of its
// own. They elect a leader, which runs a cron job each second. After a third of the time the leader is killed with SIGKILL and not
// restarted. Another member takes over within milliseconds, because the dead leader's watchdog closes its session. With -no-watchdog
// the servers end the session after its timeout.
//
//	go run ./examples/cluster
//	go run ./examples/cluster --zk host:port,host:port,host:port
//
// See member.go for the part that a service would have.
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
	runtime.LockOSThread() // members are killed when the thread that starts them ends
	if os.Getenv(memberVariable) != "" {
		os.Exit(member())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run returns the exit status: 0 only if no tick ran twice and the fencing tokens rose.
func run(ctx context.Context, args []string) int {
	return demo.ExitStatus("cluster", perform(ctx, args))
}

func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	j := newJournal(o.log())
	if err := play(ctx, o, j); err != nil {
		return err
	}
	if o.json {
		err = j.writeJSON(os.Stdout)
	} else {
		j.writeSummary()
	}
	return errors.Join(err, j.verdict())
}

// play runs the members, kills the leader, and compares the stored result with the clock.
func play(ctx context.Context, o options, j *journal) (err error) {
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	j.timeout = grantedTimeout(env)
	if err := o.fits(j.timeout); err != nil {
		return err
	}
	j.log(time.Now(), " ", "%d members on %s, below %s, session timeout %v", o.members, env.Name(), env.Config.Root, j.timeout)
	cast, err := startMembers(o, demo.Environment(env.Config, watchdogVariable+"="+strconv.FormatBool(o.watchdog)))
	defer cast.stop()
	if err != nil {
		return err
	}
	if err := act(ctx, o, cast, j); err != nil {
		return err
	}
	if j.state, err = awaitCatchUp(ctx, env.Client, cast, j); err != nil {
		return err
	}
	j.ended = true
	cast.stop()
	for e := range cast.events { // events that were not read yet
		j.take(e)
	}
	return nil
}

// act runs the members until the time is over, and kills the leader after a third of it.
func act(ctx context.Context, o options, cast *members, j *journal) error {
	end, kill := time.After(o.duration), time.After(o.duration/3)
	for {
		select {
		case e, ok := <-cast.events:
			if !ok {
				return errAllEnded
			}
			j.take(e)
		case <-kill:
			if !cast.kill(j.leads) { // no leader yet
				kill = time.After(50 * time.Millisecond)
				continue
			}
			j.killed(j.leads, time.Now())
		case <-end:
			return nil
		case <-ctx.Done():
			return errors.New("interrupted; all members were stopped")
		}
	}
}
