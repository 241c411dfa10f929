// Package id has the subcommands that print unique numbers.
package id

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "id",
		Short: "Print ids that are unique in the cluster",
		Long: `Print ids that are unique in the cluster: short numbers of a sequence, or numbers of 63 bits that
are made of a time, a slot and a count, as those of Snowflake. Programs use package ids.`,
		Example: `  lockstep id next orders
  lockstep id next orders -c 100
  lockstep id worker events --slots 1024`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newIDNext(streams), newIDWorker(streams))
	return cmd
}

// idCommand is what the subcommands of "id" have in common.
type idCommand struct {
	cli.ConnectionFlags
	count int64
	slots int
}

// mostIDs is how many ids one command prints at most.
const mostIDs = 1_000_000

// addIDFlags adds the flags of the subcommands that print ids.
func (c *idCommand) addIDFlags(streams *cli.Streams, cmd *cobra.Command) {
	c.AddConnectionFlags(streams, cmd)
	cmd.Flags().Int64VarP(&c.count, "count", "c", 1, "how many to print, one per line")
}

// printIDs connects and prints ids. use makes the source for a path, and a function that closes it.
func (c *idCommand) printIDs(cmd *cobra.Command, name string,
	use func(*framework.Client, string) (next func(context.Context) (int64, error),
		done func(context.Context) error)) error {
	if c.count < 1 || c.count > mostIDs {
		return cli.UsageError("--count %d: it must be 1 to %d", c.count, mostIDs)
	}
	path, err := cli.PathOf("ids", name)
	if err != nil {
		return err
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return cli.EndBySignal(cmd.Context(), err)
	}
	defer cli.CloseClient(c.Streams, client)
	next, done := use(client, path)
	for range c.count {
		id, err := next(cmd.Context())
		if err == nil {
			err = cli.PrintResult(c.Out, c.JSON, idJSON{path, id}, id)
		}
		if err != nil {
			return cli.EndBySignal(cmd.Context(), err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.CloseTimeout)
	defer cancel()
	return done(ctx)
}

// idJSON is an id as JSON.
type idJSON struct {
	Path string `json:"path"`
	ID   int64  `json:"id"`
}

func newIDNext(streams *cli.Streams) *cobra.Command {
	c := &idCommand{}
	cmd := &cobra.Command{
		Use:   "next NAME [flags]",
		Short: "Print the next numbers of a sequence",
		Long: `Print the next numbers of a sequence, which begins at 1. No two programs that use the sequence get the
same number. There are gaps: a command reserves up to twice as many numbers as it prints.`,
		Example: "  lockstep id next orders\n  lockstep id next orders -c 100",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return c.printIDs(cmd, args[0],
				func(client *framework.Client, path string) (func(context.Context) (int64, error),
					func(context.Context) error) {
					s := ids.NewSequence(client, path, ids.WithBlocks(c.count, c.count))
					return s.Next, s.Close
				})
		}),
	}
	c.addIDFlags(streams, cmd)
	return cmd
}

func newIDWorker(streams *cli.Streams) *cobra.Command {
	c := &idCommand{}
	cmd := &cobra.Command{
		Use:   "worker NAME [flags]",
		Short: "Print ids that are made of a time, a slot and a count",
		Long: `Print ids of 63 bits that are made of a time, a slot and a count. The command takes a free slot and
gives it back. No id is printed twice, even if clocks are wrong. All users of a NAME must give the same
number of slots. The exit code is 1 if all slots are taken.`,
		Example: "  lockstep id worker events\n  lockstep id worker events --slots 64 -c 10",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			if c.slots < 1 || c.slots > 1<<16 {
				return cli.UsageError("--slots %d: there must be 1 to %d", c.slots, 1<<16)
			}
			return c.printIDs(cmd, args[0],
				func(client *framework.Client, path string) (func(context.Context) (int64, error),
					func(context.Context) error) {
					w := ids.NewWorker(client, path, c.slots)
					return w.Next, w.Close
				})
		}),
	}
	c.addIDFlags(streams, cmd)
	cmd.Flags().IntVar(&c.slots, "slots", 1024,
		fmt.Sprintf("how many programs may use the NAME at a time, up to %d; all must give the same number", 1<<16))
	return cmd
}
