//go:build linux

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// Environment variables of a client process.
const (
	roleVariable    = "LOCKSTEP_CHAOS_ROLE" // "worker", "worker with a watchdog", "naive" or "naive reader"
	serversVariable = "LOCKSTEP_CHAOS_SERVERS"
	nameVariable    = "LOCKSTEP_CHAOS_NAME"
	seedVariable    = "LOCKSTEP_CHAOS_SEED"
	filesVariable   = "LOCKSTEP_CHAOS_FILES" // the directory of the slot's files
	sinkVariable    = "LOCKSTEP_CHAOS_SINK"  // the directory of the sinks of runs
)

const (
	roleNaive    = "naive"
	roleWorker   = "worker"
	roleWatchdog = "worker with a watchdog"
)

// sessionTimeout is T: eight ticks of the servers.
const sessionTimeout = 4 * time.Second

// clientProcess runs the workloads in a process of its own.
type clientProcess struct {
	*eventWriter
	name       string
	rand       *rand.Rand
	client     *framework.Client // nil in a naive process
	scheduling *schedulingMonitor
	load       *loadControl
	queues     queues
	services   *services // nil in a naive process
	sink       string
}

// runClientProcess is the main function of a client process. It returns when standard input is
// closed.
func runClientProcess(role string) {
	ctx, stop := context.WithCancel(context.Background())
	seed, _ := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	p := &clientProcess{
		eventWriter: &eventWriter{to: os.Stdout}, name: os.Getenv(nameVariable), rand: rand.New(rand.NewPCG(seed, 11)),
		scheduling: newSchedulingMonitor(), load: newLoadControl(),
		queues: queues{all: map[string]*queue.Queue[string]{}},
		sink:   os.Getenv(sinkVariable),
	}
	go p.scheduling.run(ctx.Done())
	go func() {
		defer stop()
		p.readOrders(os.Stdin)
	}()
	if err := p.run(ctx, role); err != nil {
		fmt.Fprintln(os.Stderr, p.name, err)
		os.Exit(1)
	}
}

func (p *clientProcess) run(ctx context.Context, role string) error {
	servers := strings.Split(os.Getenv(serversVariable), ",")
	switch role {
	case roleNaive:
		return p.runNaiveHolder(ctx, servers)
	case roleNaiveReader:
		return p.runNaiveReader(ctx, servers)
	}
	var opts []framework.Option
	if role == roleWatchdog {
		opts = append(opts, framework.WithWatchdog())
	}
	c, err := connect(ctx, servers, opts...)
	if err != nil {
		return err
	}
	p.client, p.services = c, newServices(c, os.Getenv(filesVariable))
	p.write(event{At: now(), Step: stepConnected})
	p.runActors(ctx)
	ended, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	return errors.Join(p.closeQueues(ended), p.services.close(ended), closeAll(ended, c.Close))
}

// connect connects a client without a log: the processes write the clients' errors into the
// history.
func connect(ctx context.Context, servers []string, opts ...framework.Option) (*framework.Client, error) {
	cfg := framework.Config{Servers: servers, SessionTimeout: sessionTimeout, DialTimeout: sessionTimeout / 4,
		RetryMax: time.Second}
	for {
		c, err := framework.Connect(ctx, cfg, append(opts, framework.WithLogger(slog.New(slog.DiscardHandler)))...)
		if err == nil || ctx.Err() != nil || !errors.As(err, new(*framework.ConnectError)) {
			return c, err
		}
	}
}

// runActors runs all actors until ctx ends.
func (p *clientProcess) runActors(ctx context.Context) {
	var actors sync.WaitGroup
	for _, s := range workloads {
		for range s.actors {
			r := rand.New(rand.NewPCG(p.rand.Uint64(), 13))
			actors.Go(func() { s.runActorLoop(ctx, p, r) })
		}
	}
	for _, follow := range []func(context.Context){p.followSetting, p.followTally, p.followTree, p.followInstances,
		p.followGroup} {
		actors.Go(func() { follow(ctx) })
	}
	actors.Wait()
}

// orderGoroutines is the order to write the stacks of the process's goroutines.
const orderGoroutines = "goroutines"

// writeGoroutines writes an event with the stack of each goroutine.
func (p *clientProcess) writeGoroutines() {
	all := make([]byte, 16<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		p.write(event{At: now(), Step: stepGoroutine, Error: stack[:min(len(stack), 8<<10)]}) // a line has an end
	}
	p.write(event{At: now(), Step: stepResting, Order: orderGoroutines})
}

// readOrders sets the load level by the orders on standard input, until it is closed.
func (p *clientProcess) readOrders(orders *os.File) {
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		word, number, _ := strings.Cut(lines.Text(), " ")
		if lines.Text() == orderGoroutines {
			p.writeGoroutines()
		}
		segment, err := strconv.Atoi(number)
		if next, known := loadLevels[word]; known && err == nil {
			p.load.set(next, segment, func() { p.write(event{At: now(), Step: stepResting, Order: lines.Text()}) })
		}
	}
}
