// Package dev has the subcommand that runs an in-memory server.
package dev

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/internal/zksetting"
	"github.com/lockstep-go/lockstep/zktest"
)

// devCommand is the subcommand that runs an in-memory ZooKeeper.
type devCommand struct {
	streams *cli.Streams
	listen  string
	set     []string
	json    bool
}

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	d := &devCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "dev [flags]",
		Short: "Run an in-memory ZooKeeper for development",
		Long: `Run an in-memory ZooKeeper for development, until a signal comes.

It speaks ZooKeeper's protocol, so that any client can connect: zkCli.sh, kazoo, Curator. It
is one server that keeps everything in memory: nothing is stored, and all data is gone when it
ends. Production needs an Apache ZooKeeper ensemble.

It answers as ZooKeeper 3.8 does. --set takes a setting of zoo.cfg: tickTime,
minSessionTimeout, maxSessionTimeout, maxClientCnxns, jute.maxbuffer, extendedTypesEnabled,
enforceQuota, 4lw.commands.whitelist, DigestAuthenticationProvider.superDigest,
znode.container.checkIntervalMs, nio.sessionlessCnxnTimeout, reconfigEnabled.

It has no permissions of its own. If other machines can reach --listen, it says so, accepts 60
connections of each address and answers no four-letter word but srvr, as ZooKeeper does by default.`,
		Example: `  lockstep dev
  lockstep dev --set tickTime=500 --set extendedTypesEnabled=true      short sessions, TTL nodes
  lockstep dev --listen 127.0.0.1:0 --json      a free port, printed for a program to read`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(d.serveZooKeeper),
	}
	cmd.Flags().StringVar(&d.listen, "listen", cli.DefaultServers, "address to listen on; port 0 is a free one")
	cmd.Flags().StringArrayVar(&d.set, "set", nil, "setting of zoo.cfg, as name=value (repeatable)")
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON")
	return cmd
}

func (d *devCommand) serveZooKeeper(cmd *cobra.Command, _ []string) error {
	if _, _, err := net.SplitHostPort(d.listen); err != nil {
		return cli.UsageError("--listen %q is not host:port: %w", d.listen, err)
	}
	var options []zktest.Option
	open := !isLoopback(d.listen)
	if open {
		for name, value := range openDefaults {
			options = append(options, zksetting.Option(name, value))
		}
	}
	for _, setting := range d.set {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			return cli.UsageError("--set %q is not name=value", setting)
		}
		options = append(options, zksetting.Option(name, value))
	}
	server, err := zktest.New(options...)
	if err != nil {
		return cli.UsageError("--set: %w", err)
	}
	defer server.Close()
	address, err := server.ListenTCP(d.listen)
	if err != nil {
		return cli.ExitWith(cli.ExitNoSession, err, "choose another address with --listen; port 0 is a free one")
	}
	if open {
		d.streams.PrintWarning("everybody who can reach %s can read and change what it keeps; --listen %s is for this "+
			"machine alone", address, cli.DefaultServers)
	}
	if err := d.printWelcome(address); err != nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

// openDefaults are the settings for a server that other machines can reach: a real server's own
// defaults. --set changes them.
var openDefaults = map[string]string{"maxClientCnxns": "60", "4lw.commands.whitelist": "srvr"}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) bool {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	return err == nil && resolved.IP.IsLoopback()
}

// printWelcome prints the address of the server, and what it is for.
func (d *devCommand) printWelcome(address string) error {
	if d.json {
		return cli.PrintResult(d.streams.Out, true, map[string]string{"listen": address})
	}
	style := terminal.For(d.streams.Out)
	_, err := fmt.Fprintf(d.streams.Out, `ZooKeeper listens on %s
%s

  zkCli.sh -server %s
  lockstep lock demo --zk %[3]s -- echo "held by one process in the cluster"

Ctrl-C ends it.
`, style.Bold(address), style.Yellow("One server in memory, for development only: nothing is stored."), address)
	return err
}
