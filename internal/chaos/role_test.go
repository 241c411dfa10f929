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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// What a client process is told by its environment.
const (
	roleVariable    = "LOCKSTEP_CHAOS_ROLE" // "worker", "guarded worker" or "naive"
	serversVariable = "LOCKSTEP_CHAOS_SERVERS"
	nameVariable    = "LOCKSTEP_CHAOS_NAME"
	seedVariable    = "LOCKSTEP_CHAOS_SEED"
)

const (
	naive   = "naive"
	worker  = "worker"
	guarded = "guarded worker" // has a watchdog
)

// timeout is T: eight ticks of the servers.
const timeout = 4 * time.Second

// player is a client process.
type player struct {
	*journal
	name   string
	rand   *rand.Rand
	client *framework.Client // nil in a naive one
	awake  *wakefulness
	tempo  *tempo
	queues queues
}

// play is the main function of a client process. It ends when its standard input does.
func play(role string) {
	ctx, stop := context.WithCancel(context.Background())
	seed, _ := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	p := &player{
		journal: &journal{to: os.Stdout}, name: os.Getenv(nameVariable), rand: rand.New(rand.NewPCG(seed, 11)),
		awake: newWakefulness(), tempo: newTempo(), queues: queues{all: map[string]*queue.Queue[string]{}},
	}
	go p.awake.keep(ctx.Done())
	go func() {
		defer stop()
		p.obey(os.Stdin)
	}()
	if err := p.work(ctx, role); err != nil {
		fmt.Fprintln(os.Stderr, p.name, err)
		os.Exit(1)
	}
}

func (p *player) work(ctx context.Context, role string) error {
	servers := framework.SplitServers(os.Getenv(serversVariable))
	if role == naive {
		return p.trustLibrary(ctx, servers)
	}
	var opts []framework.Option
	if role == guarded {
		opts = append(opts, framework.WithWatchdog())
	}
	c, err := connect(ctx, servers, opts...)
	if err != nil {
		return err
	}
	p.client = c
	p.write(event{At: now(), Step: ready})
	p.together(ctx)
	ended, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(p.closeQueues(ended), c.Close(ended))
}

// connect is for the clients and for the harness, which must find its own errors in the history and not in a log.
func connect(ctx context.Context, servers []string, opts ...framework.Option) (*framework.Client, error) {
	cfg := framework.Config{Servers: servers, SessionTimeout: timeout, DialTimeout: timeout / 4, RetryMax: time.Second}
	for {
		c, err := framework.Connect(ctx, cfg, append(opts, framework.WithLogger(slog.New(slog.DiscardHandler)))...)
		if err == nil || ctx.Err() != nil || !errors.As(err, new(*framework.ConnectError)) {
			return c, err
		}
	}
}

// together runs all actors until ctx ends.
func (p *player) together(ctx context.Context) {
	var actors sync.WaitGroup
	for _, s := range scenes {
		for range s.actors {
			r := rand.New(rand.NewPCG(p.rand.Uint64(), 13))
			actors.Go(func() { s.play(ctx, p, r) })
		}
	}
	actors.Wait()
}

// obey reads orders until there are no more.
func (p *player) obey(orders *os.File) {
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		word, number, _ := strings.Cut(lines.Text(), " ")
		segment, err := strconv.Atoi(number)
		if next, known := paces[word]; known && err == nil {
			p.tempo.set(next, segment, func() { p.write(event{At: now(), Step: resting, How: how(lines.Text())}) })
		}
	}
}
