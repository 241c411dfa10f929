// Command migration shows a leader that is killed in the middle of a migration. It starts an
// in-memory ZooKeeper and three members, each a process of its own. They elect a leader, which
// migrates in steps and records each finished step in a workflow.Ledger. In the middle of one step
// the leader is killed with SIGKILL. The next leader opens the ledger, reads which steps are
// finished, and continues at the first unfinished one: it runs the interrupted step a second time,
// with the same idempotency key and a higher token.
//
//	go run ./examples/migration
//	go run ./examples/migration --kill-in switch
//	go run ./examples/migration --zk host:port,host:port,host:port
//
// See member.go for the part that a service would have.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	demo.Main("migration", runMember, perform)
}

type options struct {
	servers  []string
	members  int
	killIn   string
	step     time.Duration
	timeout  time.Duration
	watchdog bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("migration", flag.ContinueOnError)
	f.IntVar(&o.members, "members", 3, "number of member processes, 2 to 50")
	f.StringVar(&o.killIn, "kill-in", "copy-3", "the step in which the leader is killed: "+strings.Join(steps, ", "))
	f.DurationVar(&o.step, "step", time.Second, "how long a step takes")
	session := demo.SessionFlags(f, "leader", "members", 30*time.Second)
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	if o.servers, err = demo.ParseFlags(f, "Shows how the next leader continues a migration whose leader was killed.",
		args); err != nil {
		return o, err
	}
	o.timeout, o.watchdog = session()
	switch {
	case o.members < 2 || o.members > 50:
		return o, fmt.Errorf("%w: -members %d: want 2 to 50, one of them is killed", demo.ErrUsage, o.members)
	case !slices.Contains(steps, o.killIn):
		return o, fmt.Errorf("%w: -kill-in %q: want one of %s", demo.ErrUsage, o.killIn, strings.Join(steps, ", "))
	case o.step < 10*time.Millisecond || o.step > time.Hour:
		return o, fmt.Errorf("%w: -step %v: want 10ms to 1h", demo.ErrUsage, o.step)
	}
	return o, nil
}

func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	log := demo.NewLog(o.json)
	s, err := runScenario(ctx, o, log)
	if err != nil {
		return err
	}
	verdict := s.verdict(o)
	switch {
	case o.json:
		err = json.NewEncoder(os.Stdout).Encode(s)
	case verdict == nil:
		fmt.Fprintf(log.Out, "\nHeld: %d steps are recorded once each. %q was begun twice,\nwith one key; the others "+
			"were begun once.\n", len(s.Recorded), o.killIn)
	}
	return errors.Join(err, verdict)
}

// runScenario starts the members, kills the leader in a step, and returns when the next leader has
// finished the migration.
func runScenario(ctx context.Context, o options, log demo.Log) (s summary, err error) {
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	fmt.Fprintf(log.Out, "%d members on %s, below %s\n", o.members, env.Name(), env.Config.Root)
	members := demo.NewChildren[event](demo.Environment(env.Config, o.watchdog, stepVariable+"="+o.step.String()))
	defer members.Stop()
	for n := range o.members {
		if err := members.Start(fmt.Sprintf("member-%d", n+1)); err != nil {
			return s, err
		}
	}
	st := &scenario{options: o, members: members, log: log}
	st.summary.Begun, st.keys = map[string]int{}, map[string]string{}
	if err := st.awaitFinish(ctx); err != nil {
		return s, err
	}
	err = st.summary.readRecords(ctx, env.Client)
	return st.summary, err
}
