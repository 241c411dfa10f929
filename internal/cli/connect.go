package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
)

const (
	DefaultServers        = "127.0.0.1:2181"
	defaultConnectTimeout = 10 * time.Second
	CloseTimeout          = 5 * time.Second
	// WatchedSessionTimeout is the default with a watchdog, which closes the session of a crashed
	// process at once. Servers with the usual tick grant no more. It leaves time for the silent
	// loss of the leading server's machine, and for the command to end (docs/timeouts.md).
	WatchedSessionTimeout = 40 * time.Second
	// briefSessionTimeout is the default of commands that hold nothing: they read or change
	// something, and end.
	briefSessionTimeout = 10 * time.Second
)

// ConnectionFlags are the flags of each subcommand that has a client.
type ConnectionFlags struct {
	*Streams
	Servers        string
	Root           string
	connectTimeout DurationFlag
	SessionTimeout DurationFlag
	JSON           bool
	connecting     *atomic.Bool // until there is a session
}

func (c *ConnectionFlags) AddConnectionFlags(streams *Streams, cmd *cobra.Command) {
	c.Streams, c.connecting = streams, &atomic.Bool{}
	f := cmd.Flags()
	c.connectTimeout = DurationFlag(defaultConnectTimeout)
	f.StringVar(&c.Servers, "zk", "", "the servers: host:port,host:port[/root] (default $LOCKSTEP_SERVERS, else "+
		DefaultServers+")")
	f.StringVar(&c.Root, "root", "",
		"the path that all other paths are below (default that of --zk or $LOCKSTEP_SERVERS, else "+
			"$LOCKSTEP_ROOT, else /)")
	f.Var(&c.connectTimeout, "connect-timeout", "how long to try to get a session")
	f.Var(&c.SessionTimeout, "session-timeout",
		"holds survive nearly half of it (default $LOCKSTEP_SESSION_TIMEOUT, else 40s; without watchdog 30s; no hold 10s)")
	f.BoolVar(&c.JSON, "json", false, "print JSON, one object per line")
}

// ClientConfig returns the configuration of the environment, changed by the flags.
func (c *ConnectionFlags) ClientConfig(cmd *cobra.Command) (framework.Config, error) {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return cfg, err
	}
	if cmd.Flags().Changed("zk") {
		var root string
		if cfg.Servers, root, err = framework.ParseServers(c.Servers); err != nil {
			return cfg, fmt.Errorf("--zk: %w", err)
		}
		if root != "" && c.Root != "" && c.Root != root {
			return cfg, UsageError("--zk ends in %s, and --root is %s: give one of them", root, c.Root)
		}
		cfg.Root = cmp.Or(root, os.Getenv(framework.EnvRoot)) // a root in LOCKSTEP_SERVERS is that of other servers
	} else if len(cfg.Servers) == 0 {
		cfg.Servers = []string{DefaultServers}
	}
	if cmd.Flags().Changed("root") {
		if c.Root == "" {
			return cfg, UsageError("--root is empty: / is the whole tree")
		}
		cfg.Root = c.Root
	}
	if c.SessionTimeout != 0 {
		cfg.SessionTimeout = time.Duration(c.SessionTimeout)
	}
	switch {
	case cfg.SessionTimeout != 0:
	case wantsWatchdog(cmd):
		cfg.SessionTimeout = WatchedSessionTimeout
	case !holdsSomething(cmd):
		cfg.SessionTimeout = briefSessionTimeout
	}
	return cfg, cfg.Validate()
}

// ConnectClient returns a client with a session, within --connect-timeout. Further options come
// after those of the subcommand.
func (c *ConnectionFlags) ConnectClient(cmd *cobra.Command, further ...framework.Option) (*framework.Client, error) {
	cfg, err := c.ClientConfig(cmd)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Duration(c.connectTimeout))
	defer cancel()
	c.connecting.Store(true)
	defer c.connecting.Store(false)
	client, err := framework.Connect(ctx, cfg, append(c.clientOptions(cmd), further...)...)
	switch {
	case err == nil:
		return client, nil
	case EndedBySignal(cmd.Context()):
		return nil, context.Cause(cmd.Context())
	}
	return nil, c.unreachableError(cmd, err)
}

// ConnectSilently returns a client with a session for a subcommand's flags, and prints and logs
// nothing. It is for completion, and for the ACL that is read after an error.
func ConnectSilently(ctx context.Context, cmd *cobra.Command) (*framework.Client, error) {
	c := &ConnectionFlags{}
	for flag, value := range map[string]*string{"zk": &c.Servers, "root": &c.Root} {
		if f := cmd.Flags().Lookup(flag); f != nil {
			*value = f.Value.String()
		}
	}
	cfg, err := c.ClientConfig(cmd)
	if err != nil {
		return nil, err
	}
	return framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
}

// clientOptions returns the options of a subcommand's client. A subcommand that holds something has
// a watchdog, unless a flag turns it off.
func (c *ConnectionFlags) clientOptions(cmd *cobra.Command) []framework.Option {
	all := []framework.Option{framework.WithLogger(c.PeopleLogger(""))}
	if wantsWatchdog(cmd) {
		all = append(all, framework.WithWatchdog())
	}
	return all
}

// PeopleLogger returns the log of a subcommand's client, without one message.
func (c *ConnectionFlags) PeopleLogger(unsaid string) *slog.Logger {
	return slog.New(PeopleLogHandler{Streams: c.Streams, Unsaid: unsaid, Connecting: c.connecting})
}

// wantsWatchdog reports whether a subcommand holds something and no flag turns its watchdog off.
func wantsWatchdog(cmd *cobra.Command) bool {
	without, err := cmd.Flags().GetBool(NoWatchdogFlag)
	return err == nil && !without
}

// holdsSomething reports whether a subcommand holds something while it runs: it has the flag that
// turns the watchdog off, or the annotation keepsNode.
func holdsSomething(cmd *cobra.Command) bool {
	return cmd.Flags().Lookup(NoWatchdogFlag) != nil || cmd.Annotations[KeepsNode] != ""
}

// KeepsNode is the annotation of subcommands that have no watchdog, and keep a node of their
// session that others use.
const KeepsNode = "keeps-node"

// unreachableError lists each server with its cause, a line each. lockstep doctor has examined
// them.
func (c *ConnectionFlags) unreachableError(cmd *cobra.Command, err error) error {
	reason := fmt.Sprintf("no session within %v", time.Duration(c.connectTimeout))
	var failed *framework.ConnectError
	switch {
	case errors.Is(err, framework.ErrAuthFailed):
		return ExitWith(ExitNoPermission, fmt.Errorf("the servers refuse the credentials: %w", err),
			"check LOCKSTEP_AUTH_FILE or LOCKSTEP_AUTH")
	case !errors.As(err, &failed):
		return err
	}
	if cmd.Name() == "doctor" {
		return ExitWith(ExitNoSession, errors.New(reason), "")
	}
	for _, s := range failed.Servers {
		reason += "\n  " + s.Error()
	}
	hint := "name the servers with --zk or LOCKSTEP_SERVERS, or start one to try things: lockstep dev"
	switch { // servers that were named
	case c.Servers != "":
		hint = "see what is wrong with each server: lockstep doctor --zk " + ShellWord(c.Servers)
	case os.Getenv(framework.EnvServers) != "":
		hint = "see what is wrong with each server: lockstep doctor"
	}
	return ExitWith(ExitNoSession, errors.New(reason), hint)
}

// WithClient connects, calls do with the client, and closes the client. It is for subcommands that
// hold nothing.
func (c *ConnectionFlags) WithClient(cmd *cobra.Command, do func(context.Context, *framework.Client) error) error {
	client, err := c.ConnectClient(cmd)
	if err == nil {
		defer CloseClient(c.Streams, client)
		err = do(cmd.Context(), client)
	}
	return EndBySignal(cmd.Context(), err)
}

// CloseClient closes the client and its session. The servers delete the session's ephemeral nodes
// at once.
func CloseClient(streams *Streams, client *framework.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		streams.PrintWarning("the session may last until its timeout: %v", err)
	}
}

const NoWatchdogFlag = "no-watchdog"
