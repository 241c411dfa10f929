// Command order shows that an order is paid once although its executor is killed twenty times. It
// starts an in-memory ZooKeeper, a database in a file (SQLite), and two executors, each a process
// of its own. It starts the run of one order: reserve, charge, pack, send. The executor that takes
// the run is killed with SIGKILL at a random point, before, within or after the effect of a step,
// and a new one is started. The next one continues at the first step without a record. If the
// effect of that step has happened already, the step is run again: the customer is still charged
// once, because the payment has the step's idempotency key. With -no-key the payment has none, the
// customer is charged again, and the exit status is 1.
//
//	go run ./examples/order
//	go run ./examples/order --zk host:port,host:port,host:port
//
// See executor.go and database.go for the parts that a service would have.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	demo.Main("order", runExecutor, perform)
}

type options struct {
	servers  []string
	kills    int
	timeout  time.Duration
	watchdog bool
	keyed    bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("order", flag.ContinueOnError)
	f.IntVar(&o.kills, "kills", 20, "how often an executor is killed, 1 to 40")
	// short, because an executor may be killed before its watchdog is armed
	session := demo.SessionFlags(f, "executor", "executors", 5*time.Second)
	noKey := f.Bool("no-key", false, "payments have no idempotency key: the customer is charged more than once")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	if o.servers, err = demo.ParseFlags(f,
		"Shows that an order is paid once although its executor is killed many times.", args); err != nil {
		return o, err
	}
	o.timeout, o.watchdog = session()
	o.keyed = !*noKey
	if o.kills < 1 || o.kills > 40 {
		return o, fmt.Errorf("%w: -kills %d: want 1 to 40, since a run that has lost 51 executors fails",
			demo.ErrUsage, o.kills)
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
	if o.json {
		return errors.Join(json.NewEncoder(os.Stdout).Encode(s), verdict)
	}
	s.write(log.Out)
	if verdict == nil {
		fmt.Fprintf(log.Out, "\nHeld: %d executors were killed, and the customer paid once.\n", s.Kills)
	}
	return verdict
}

// runScenario executes one order while its executors are killed.
func runScenario(ctx context.Context, o options, log demo.Log) (s summary, err error) {
	env, err := demo.Open(ctx, o.servers, o.timeout)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	dir, err := os.MkdirTemp("", "lockstep-order-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the directory for temporary files
	file := filepath.Join(dir, "shop.db")
	l, err := openDatabase(file)
	if err != nil {
		return s, err
	}
	defer l.close() //nolint:errcheck // it is only read here
	if err := l.create(ctx); err != nil {
		return s, err
	}
	executors := demo.NewChildren[stopPoint](demo.Environment(env.Config, o.watchdog,
		databaseVariable+"="+file, keyVariable+"="+strconv.FormatBool(o.keyed)))
	defer executors.Stop()
	fmt.Fprintf(log.Out, "two executors on %s, below %s\n", env.Name(), env.Config.Root)
	st := &scenario{options: o, executors: executors, log: log, killed: map[string]bool{}}
	if err := st.run(ctx, env.Client); err != nil {
		return s, err
	}
	s = st.summary
	s.orderRecord, err = l.read(ctx, orderID)
	return s, err
}
