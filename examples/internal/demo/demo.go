// Package demo has the common parts of the examples: flags, exit statuses and a log; a ZooKeeper
// and a root node for each run; and child processes that end with their parent.
//
// To add an example, write examples/NAME/main.go: call framework.WatchdogMain and then Main, with a
// function for the child processes and one for the parent. The parent reads its flags with
// ParseFlags, connects with Open, and starts children with NewChildren. List the example in
// docs/start/examples.md.
package demo

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

// Close removes the root node from real servers, closes the client and stops a server in memory.
// The error says what is left.
func (e *Env) Close() error {
	// on a busy machine, hundreds of deletions one after the other take their time
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
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

// removeRoot deletes the root node and all nodes below it. It lists them again if a deletion finds
// a new node: one that this client's server had not applied yet, or that the last request of a
// killed process has created.
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

// Servers returns the given servers. If there are none, it starts one in memory.
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

// NewRoot returns a root node that no other run uses. Its nodes are containers, which the servers
// remove once they are empty.
func NewRoot() string { return "/lockstep-example-" + strings.ToLower(rand.Text()[:10]) }

// watchdogVariable is "true" in a child process whose ConnectMember starts a watchdog.
const watchdogVariable = "LOCKSTEP_EXAMPLE_WATCHDOG"

// Environment returns the environment of a child process whose ConnectMember connects as config
// says, with further variables ("NAME=value"). The watchdog is optional.
func Environment(config framework.Config, watchdog bool, variables ...string) []string {
	return append(append(os.Environ(), variables...),
		watchdogVariable+"="+strconv.FormatBool(watchdog),
		framework.EnvServers+"="+strings.Join(config.Servers, ","),
		framework.EnvRoot+"="+config.Root,
		framework.EnvSessionTimeout+"="+config.SessionTimeout.String())
}

// ConnectMember connects a child process. Environment has set its servers, its root and whether it
// has a watchdog. It waits for the watchdog, since the parent may kill the process at any time from
// then on.
func ConnectMember(ctx context.Context) (*framework.Client, error) {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	if os.Getenv(watchdogVariable) != "true" {
		return framework.Connect(ctx, config, framework.WithLogger(slog.New(slog.DiscardHandler)))
	}
	armed := make(armedLog, 1)
	// main begins with framework.WatchdogMain
	client, err := framework.Connect(ctx, config, framework.WithLogger(slog.New(armed)), framework.WithWatchdog())
	if err != nil {
		return nil, err
	}
	select {
	case <-armed:
		return client, nil
	case <-ctx.Done():
		_ = client.Close(ctx)
		return nil, context.Cause(ctx)
	}
}

// armedLog is a log that only tells when the watchdog is armed: it receives a value.
type armedLog chan struct{}

// Enabled is part of slog.Handler.
func (armedLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle is part of slog.Handler.
func (l armedLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "watchdog armed" {
		select {
		case l <- struct{}{}:
		default: // a later watchdog
		}
	}
	return nil
}

// WithAttrs is part of slog.Handler.
func (l armedLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup is part of slog.Handler.
func (l armedLog) WithGroup(string) slog.Handler { return l }

// RemoveTree deletes a node and all nodes below it. Other clients may delete nodes there at the
// same time.
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
