// Package demo is what the examples with several processes share: a ZooKeeper, a root node of their own, and child processes that end with
// their parent.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// Env is the ZooKeeper of one run, and the parent process's client.
type Env struct {
	Config framework.Config // of the parent and its children
	Client *framework.Client

	inMemory     bool
	closeServers func()
}

// Open connects to the servers, or to one in memory if there are none, below a new root node.
func Open(ctx context.Context, servers []string, timeout time.Duration) (*Env, error) {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	e := &Env{Config: config, inMemory: len(servers) == 0}
	e.Config.SessionTimeout, e.Config.Root = timeout, NewRoot()
	if e.Config.Servers, e.closeServers, err = Servers(servers, timeout); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e.Client, err = framework.Connect(ctx, e.Config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		e.closeServers()
		return nil, err
	}
	return e, nil
}

// Name describes the servers in one line.
func (e *Env) Name() string {
	if e.inMemory {
		return "a ZooKeeper in memory"
	}
	return strings.Join(e.Config.Servers, ",")
}

// Close removes the root node from real servers, closes the client and stops a server in memory. The error says what is left.
func (e *Env) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if !e.inMemory {
		if err = e.removeRoot(ctx); err != nil {
			err = fmt.Errorf("%s is left behind: %w", e.Config.Root, err)
		}
	}
	_ = e.Client.Close(ctx) // otherwise the session expires
	e.closeServers()
	return err
}

// removeRoot deletes the root node. A node that another server has already, or that a killed process's last request creates, keeps it from being deleted: then
// removeRoot lists again.
func (e *Env) removeRoot(ctx context.Context) error {
	for {
		session, err := e.Client.Session(ctx)
		if err == nil {
			err = session.Sync(ctx, "/")
		}
		if err == nil {
			err = RemoveTree(ctx, e.Client, "/")
		}
		if !errors.Is(err, framework.ErrNotEmpty) || ctx.Err() != nil {
			return err
		}
	}
}

// Servers returns the given servers, or one that it starts in memory if there are none.
func Servers(servers []string, timeout time.Duration) (addresses []string, stop func(), err error) {
	if len(servers) > 0 {
		return servers, func() {}, nil
	}
	memory, err := zktest.New(zktest.WithTick(timeout / 4))
	if err != nil {
		return nil, nil, err
	}
	address, err := memory.ListenTCP("127.0.0.1:0")
	if err != nil {
		memory.Close()
		return nil, nil, err
	}
	return []string{address}, memory.Close, nil
}

// NewRoot returns a root node that no other run uses. Its nodes are containers, which the servers remove once they are empty.
func NewRoot() string { return "/lockstep-example-" + strings.ToLower(rand.Text()[:10]) }

// Environment returns the environment of a child process that connects as config says, with further variables ("NAME=value").
func Environment(config framework.Config, variables ...string) []string {
	return append(append(os.Environ(), variables...),
		framework.EnvServers+"="+strings.Join(config.Servers, ","),
		framework.EnvRoot+"="+config.Root,
		framework.EnvSessionTimeout+"="+config.SessionTimeout.String())
}

// RemoveTree deletes a node and all nodes below it. Other clients may delete there, too.
func RemoveTree(ctx context.Context, client *framework.Client, path string) error {
	names, _, err := client.Children(ctx, path)
	for _, name := range names {
		err = errors.Join(err, RemoveTree(ctx, client, strings.TrimSuffix(path, "/")+"/"+name))
	}
	if err == nil {
		err = client.DeleteIfPresent(ctx, path)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}
