package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// stage is the ZooKeeper that is played on, and the parent's own client.
type stage struct {
	memory *zktest.Server // nil on real servers
	config framework.Config
	client *framework.Client
}

// openStage connects to the servers, or to one in memory, below a root that nobody else uses.
func openStage(ctx context.Context, o options) (*stage, error) {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.Servers, config.SessionTimeout = o.servers, o.timeout
	config.Root = "/lockstep-example-" + strings.ToLower(rand.Text()[:10])
	s := &stage{config: config}
	if len(o.servers) == 0 {
		if err := s.startMemory(); err != nil {
			return nil, err
		}
	}
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s.client, err = framework.Connect(within, s.config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil && s.memory != nil {
		s.memory.Close()
	}
	return s, err
}

func (s *stage) startMemory() error {
	memory, err := zktest.New(zktest.WithTick(s.config.SessionTimeout / 4))
	if err != nil {
		return err
	}
	address, err := memory.ListenTCP("127.0.0.1:0")
	if err != nil {
		memory.Close()
		return err
	}
	s.memory, s.config.Servers = memory, []string{address}
	return nil
}

// timeout is the session timeout that the servers have granted.
func (s *stage) timeout() time.Duration {
	session, err := s.client.Session(context.Background())
	if err != nil {
		return s.config.SessionTimeout
	}
	return session.Timeout()
}

func (s *stage) place() string {
	if s.memory != nil {
		return "a ZooKeeper in memory"
	}
	return strings.Join(s.config.Servers, ",")
}

// environment tells members where to play.
func (s *stage) environment(o options) []string {
	return append(os.Environ(),
		watchdogVariable+"="+strconv.FormatBool(o.watchdog),
		framework.EnvServers+"="+strings.Join(s.config.Servers, ","),
		framework.EnvRoot+"="+s.config.Root,
		framework.EnvSessionTimeout+"="+s.config.SessionTimeout.String())
}

// settled waits until the stored state accounts for every tick that is due by now, and returns it.
func (s *stage) settled(ctx context.Context, cast *members, j *journal) (scheduler.State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*s.timeout()+10*time.Second, errors.New("the members have not caught up with the clock"))
	defer cancel()
	cluster := scheduler.New(s.client, clusterPath)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case e, ok := <-cast.events:
			if !ok {
				return scheduler.State{}, errAllEnded
			}
			j.take(e)
		case <-look.C:
			state, err := cluster.State(ctx, jobName)
			if err == nil && state.Running == nil && due(state, time.Now()) == due(state, state.Last) {
				return state, nil
			}
		case <-ctx.Done():
			return scheduler.State{}, context.Cause(ctx)
		}
	}
}

// close removes what was written and ends the ZooKeeper in memory.
func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.remove(ctx, "/"); err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %s is left behind: %v\n", s.config.Root, err)
	}
	_ = s.client.Close(ctx) // the session ends by itself otherwise
	if s.memory != nil {
		s.memory.Close()
	}
}

// remove deletes a node and all below it.
func (s *stage) remove(ctx context.Context, path string) error {
	names, _, err := s.client.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, s.remove(ctx, framework.Join(path, name)))
	}
	if err != nil {
		return err
	}
	return s.client.DeleteIfPresent(ctx, path)
}
