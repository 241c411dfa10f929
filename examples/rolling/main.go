// Command rolling restarts the instances of a service one after the other while a client calls it,
// and no call fails: each instance drains, that is, it is disabled, waits until the client's pool
// has noticed, and ends. Then it kills one instance with SIGKILL: some calls fail, until the pool
// ejects it.
//
//	go run ./examples/rolling
//	go run ./examples/rolling --zk host:port,host:port,host:port
//
// It starts an in-memory ZooKeeper and three instances, each a process of its own. See instance.go
// for the part that a service would have, load.go for that of a client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/registry"
)

func main() {
	demo.Main("rolling", runInstance, perform)
}

type options struct {
	servers []string
	workers int
	linger  time.Duration
	json    bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("rolling", flag.ContinueOnError)
	f.IntVar(&o.workers, "workers", 8, "calls at once, 1 to 100")
	f.DurationVar(&o.linger, "linger", time.Second, "how long an instance that drains waits for pools")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	if o.servers, err = demo.ParseFlags(f, "Restarts the instances of a service under load, then kills one.",
		args); err != nil {
		return o, err
	}
	switch {
	case o.workers < 1 || o.workers > 100:
		return o, fmt.Errorf("%w: -workers %d: want 1 to 100", demo.ErrUsage, o.workers)
	case o.linger < 0:
		return o, fmt.Errorf("%w: -linger %v: want 0 or more", demo.ErrUsage, o.linger)
	}
	return o, nil
}

// summary is what --json prints.
type summary struct {
	Rolling callCount `json:"rolling_restart"`
	Killed  callCount `json:"kill"`
}

func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	out := demo.NewLog(o.json)
	s, err := runScenario(ctx, o, func(format string, args ...any) { out.Line(time.Now(), format, args...) })
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(os.Stdout).Encode(s)
	} else {
		fmt.Fprintf(out.Out, "\n%s\n  rolling restart of three instances  %6d calls, %d failed\n  kill -9 of one of "+
			"them              %6d calls, %d failed\n",
			out.Bold("Summary"), s.Rolling.Calls, s.Rolling.Failed, s.Killed.Calls, s.Killed.Failed)
	}
	if s.Rolling.Failed > 0 {
		return errors.Join(err, fmt.Errorf("%d calls failed in the rolling restart", s.Rolling.Failed))
	}
	if !o.json {
		fmt.Fprintf(out.Out, "\n%s no call failed while the instances were restarted: each one drained.\n"+
			"A kill gives no warning: %d calls were at the killed instance, or went to it\n"+
			"before the pool had seen enough failures to leave it out.\n", out.Green("Held:"), s.Killed.Failed)
	}
	return err
}

// runScenario restarts three instances one after the other, and kills one, all under load.
func runScenario(ctx context.Context, o options, log func(string, ...any)) (s summary, err error) {
	env, err := demo.Open(ctx, o.servers, 5*time.Second)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	ids := []string{"one", "two", "three"}
	instances := instanceProcesses{
		demo.NewChildren[string](demo.Environment(env.Config, false, lingerVariable+"="+o.linger.String()))}
	instances.KillAfter += o.linger
	defer instances.Stop()
	log("three instances on %s, below %s", env.Name(), env.Config.Root)
	for _, id := range ids {
		if err := instances.start(ctx, id); err != nil {
			return s, err
		}
	}
	pool := registry.NewPool(env.Client, base, service)
	defer func() { _ = pool.Close(context.Background()) }()
	transport := &http.Transport{MaxIdleConnsPerHost: o.workers}
	defer transport.CloseIdleConnections()
	if _, _, err := pool.Instances(ctx); err != nil { // so that the first calls do not wait
		return s, err
	}
	calls := startLoad(pool.Transport(transport), o.workers)
	defer calls.stop()

	for _, id := range ids {
		log("%s drains, ends, and is started again", id)
		if err := instances.drain(ctx, id); err != nil {
			return s, err
		}
		if err := instances.start(ctx, id); err != nil {
			return s, err
		}
	}
	s.Rolling = calls.count()
	log("restarted: %d calls, %d failed", s.Rolling.Calls, s.Rolling.Failed)

	instances.Kill(ids[0])
	log("%s is killed (SIGKILL)", ids[0])
	if s.Killed, err = calls.awaitEjection(ctx, s.Rolling); err != nil {
		return s, err
	}
	log("killed: %d calls, %d failed", s.Killed.Calls, s.Killed.Failed)
	return s, nil
}

var errInterrupted = errors.New("interrupted; all instances were stopped")

// instanceProcesses are the instances, each a process of its own.
type instanceProcesses struct{ *demo.Children[string] }

// start starts an instance and waits until it is registered.
func (p instanceProcesses) start(ctx context.Context, id string) error {
	if err := p.Start(id); err != nil {
		return err
	}
	return p.await(ctx, id, false)
}

// drain ends an instance in such a way that no call fails.
func (p instanceProcesses) drain(ctx context.Context, id string) error {
	p.End(id)
	return p.await(ctx, id, true)
}

// await waits until an instance is registered, or until it has ended. It returns an error if an
// instance has failed.
func (p instanceProcesses) await(ctx context.Context, id string, end bool) error {
	for {
		select {
		case received := <-p.Events:
			switch {
			case received.Err != nil:
				return fmt.Errorf("%s has failed: %w", received.Child, received.Err)
			case received.Child == id && received.Ended == end:
				return nil
			case received.Ended:
				return fmt.Errorf("%s has ended by itself", received.Child)
			}
		case <-ctx.Done():
			return errInterrupted
		}
	}
}
