// Command rolling restarts the instances of a service one after the other while a client calls it, and no call fails: each instance drains, that is, it is disabled, waits until
// the client's pool has noticed, and ends. Then it kills one instance with SIGKILL: some calls fail, until the pool ejects it.
//
//	go run ./examples/rolling
//	go run ./examples/rolling --zk host:port,host:port,host:port
//
// It starts an in-memory ZooKeeper and three instances, each a process of its own. See instance.go for the part that a service would have, load.go for that of a client.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/registry"
)

func main() {
	runtime.LockOSThread() // instances are killed when the thread that starts them ends
	if id := os.Getenv(instanceVariable); id != "" {
		os.Exit(instance(id))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	o, err := parse(args)
	if err == nil {
		err = perform(ctx, o)
	}
	return demo.ExitStatus("rolling", err)
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
	if o.servers, err = demo.ParseFlags(f, "Restarts the instances of a service under load, then kills one.", args); err != nil {
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
	Rolling count `json:"rolling_restart"`
	Killed  count `json:"kill"`
}

func perform(ctx context.Context, o options) error {
	out := os.Stdout
	if o.json {
		out = os.Stderr
	}
	style := terminal.For(out)
	s, err := play(ctx, o, func(format string, args ...any) {
		fmt.Fprintf(out, "%s  %s\n", style.Dim(time.Now().Local().Format("15:04:05.000")), fmt.Sprintf(format, args...))
	})
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(os.Stdout).Encode(s)
	} else {
		fmt.Printf("\n%s\n  rolling restart of three instances  %6d calls, %d failed\n  kill -9 of one of them              %6d calls, %d failed\n",
			style.Bold("Summary"), s.Rolling.Calls, s.Rolling.Failed, s.Killed.Calls, s.Killed.Failed)
	}
	if s.Rolling.Failed > 0 {
		return errors.Join(err, fmt.Errorf("%d calls failed in the rolling restart", s.Rolling.Failed))
	}
	return err
}

// play restarts three instances one after the other, and kills one, all under load.
func play(ctx context.Context, o options, log func(string, ...any)) (s summary, err error) {
	env, err := demo.Open(ctx, o.servers, 5*time.Second)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	ids := []string{"one", "two", "three"}
	instances := map[string]*process{}
	defer func() {
		for _, p := range instances {
			p.kill()
		}
	}()
	log("three instances on %s, below %s", env.Name(), env.Config.Root)
	for _, id := range ids {
		if instances[id], err = start(ctx, id, o, env); err != nil {
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
		if err := instances[id].drain(ctx); err != nil {
			return s, err
		}
		if instances[id], err = start(ctx, id, o, env); err != nil {
			return s, err
		}
	}
	s.Rolling = calls.count()
	log("restarted: %d calls, %d failed", s.Rolling.Calls, s.Rolling.Failed)

	instances[ids[0]].kill()
	log("%s is killed (SIGKILL)", ids[0])
	if err := sleep(ctx, 2*time.Second); err != nil {
		return s, err
	}
	s.Killed = calls.count().since(s.Rolling)
	log("killed: %d calls, %d failed", s.Killed.Calls, s.Killed.Failed)
	return s, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.New("interrupted; all instances were stopped")
	}
}

// process is an instance.
type process struct {
	id    string
	cmd   *exec.Cmd
	stdin io.Closer // the instance drains and ends when it is closed
	ended chan error
}

// start runs an instance and waits until it is registered.
func start(ctx context.Context, id string, o options, env *demo.Env) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = demo.Environment(env.Config, instanceVariable+"="+id, lingerVariable+"="+o.linger.String())
	cmd.Stderr = os.Stderr
	demo.DieWithParent(cmd)
	p := &process{id: id, cmd: cmd, ended: make(chan error, 1)}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		ready <- lines.Scan()
		for lines.Scan() {
			continue
		}
		p.ended <- cmd.Wait()
	}()
	select {
	case yes := <-ready:
		if yes {
			return p, nil
		}
		return nil, fmt.Errorf("%s has ended: %w", id, <-p.ended)
	case <-ctx.Done():
		p.kill()
		return nil, errors.New("interrupted; all instances were stopped")
	}
}

// drain ends an instance so that no call fails.
func (p *process) drain(ctx context.Context) error {
	_ = p.stdin.Close()
	select {
	case err := <-p.ended:
		p.ended <- nil
		if err != nil {
			return fmt.Errorf("%s: %w", p.id, err)
		}
		return nil
	case <-ctx.Done():
		return errors.New("interrupted; all instances were stopped")
	}
}

// kill ends an instance as a crash does. It may have ended.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	err := <-p.ended
	p.ended <- err
}
