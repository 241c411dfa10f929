// Package config has the subcommands of configuration values.
package config

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
)

// Command is the subcommand "config".
func Command(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Read, change and follow a configuration value",
		Long: `Read, change and follow a configuration value, which programs read with package config.

The node has the value's bytes and nothing else. The last 20 values are kept beside it, with
writer, time and note. A version is the number of the transaction that wrote the value.`,
		Example: `  lockstep config set limits '{"rate":20}' --note "twice the rate"
  lockstep config ls
  lockstep config get limits
  lockstep config edit limits
  lockstep config watch limits
  lockstep config history limits
  lockstep config diff limits
  lockstep config rollback limits 4294967312`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newConfigList(streams), newConfigGet(streams), newConfigSet(streams), newConfigEdit(streams),
		newConfigWatch(streams),
		newConfigHistory(streams), newConfigDiff(streams), newConfigRollback(streams))
	return cmd
}
