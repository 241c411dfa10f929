package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
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

func (s *stage) place() string {
	if s.memory != nil {
		return "a ZooKeeper in memory"
	}
	return strings.Join(s.config.Servers, ",")
}

// environment tells workers what to do, and where.
func (s *stage) environment(o options) []string {
	text, err := json.Marshal(o.job)
	if err != nil {
		panic(err) // it consists of numbers
	}
	return append(os.Environ(),
		jobVariable+"="+string(text),
		watchdogVariable+"="+strconv.FormatBool(o.watchdog),
		framework.EnvServers+"="+strings.Join(s.config.Servers, ","),
		framework.EnvRoot+"="+s.config.Root,
		framework.EnvSessionTimeout+"="+s.config.SessionTimeout.String())
}

// report reads what was reported of the last round.
func (s *stage) report(ctx context.Context) (result, error) {
	rounds, err := roundsThere(ctx, s.client)
	if err != nil {
		return result{}, err
	}
	return readReport(ctx, s.client, slices.Max(append(rounds, 1)))
}

// close removes what was written and ends the ZooKeeper in memory. The error says what is left behind.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if s.memory == nil {
		if err = remove(ctx, s.client, "/"); err != nil {
			err = fmt.Errorf("%s is left behind: %w", s.config.Root, err)
		}
	}
	_ = s.client.Close(ctx) // the session ends by itself otherwise
	if s.memory != nil {
		s.memory.Close()
	}
	return err
}
