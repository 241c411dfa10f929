package barrier

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/internal/cli"
)

func newLatch(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "latch",
		Short: "Count down, and wait until all have counted",
		Long: `Count down, and wait until all have counted. A latch opens when enough ids have counted, and stays
open, also if the processes that have counted die. A second count of the same id has no effect.`,
		Example: `  lockstep latch count started -n 3 --id web-1
  lockstep latch wait started -n 3 && ./go.sh
  lockstep latch ls started`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newLatchCount(streams), newLatchWait(streams), newLatchReset(streams), newLatchList(streams))
	return cmd
}

// latchCommand is what the subcommands that use one latch have in common.
type latchCommand struct {
	cli.ConnectionFlags
	counts int
	id     string
	wait   cli.DurationFlag
	path   string
}

func (l *latchCommand) prepare(streams *cli.Streams, cmd *cobra.Command,
	use func(*latchCommand, context.Context, *barrier.Latch) error) *cobra.Command {
	cmd.Args = cli.CheckNameAlone
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) (err error) {
		if l.path, err = cli.PathOf("latches", args[0]); err != nil {
			return err
		}
		if l.counts < 1 {
			return cli.UsageError("-n %d: say how many counts open it, 1 or more", l.counts)
		}
		if l.id == "" && cmd.Flags().Changed("id") {
			return cli.UsageError("--id is empty: name the machine or the task that counts")
		}
		client, err := l.ConnectClient(cmd)
		if err != nil {
			return err
		}
		defer cli.CloseClient(l.Streams, client)
		if l.id == "" {
			l.id = client.Config().Identity
		}
		return use(l, cmd.Context(), barrier.NewLatch(client, l.path, l.counts))
	})
	l.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().IntVarP(&l.counts, "counts", "n", 0, "how many counts open the latch; all must give the same number")
	return cmd
}

func newLatchCount(streams *cli.Streams) *cobra.Command {
	l := &latchCommand{}
	cmd := l.prepare(streams, &cobra.Command{
		Use:   "count NAME -n N [flags]",
		Short: "Count for an id, once",
		Long: `Count for an id. A second count of the same id has no effect, so the command may be repeated until it
succeeds. Give an --id that stays the same when you repeat it, such as that of a machine or a
task: the default contains the process id.`,
		Example: "  lockstep latch count started -n 3 --id web-1",
	}, func(l *latchCommand, ctx context.Context, latch *barrier.Latch) error {
		return latch.CountDown(ctx, l.id)
	})
	cmd.Flags().StringVar(&l.id, "id", "",
		"the id that counts (default $LOCKSTEP_IDENTITY, else host name and process id)")
	return cmd
}

func newLatchWait(streams *cli.Streams) *cobra.Command {
	l := &latchCommand{}
	cmd := l.prepare(streams, &cobra.Command{
		Use:   "wait NAME -n N [flags]",
		Short: "Wait until a latch has opened",
		Long: "Wait until a latch has opened, or was open for a moment. The wait goes on while the servers cannot " +
			"be reached.",
		Example: `  lockstep latch wait started -n 3
  lockstep latch wait started -n 3 -w 30     exit with 1 if it has not opened after 30 seconds`,
	}, func(l *latchCommand, ctx context.Context, latch *barrier.Latch) error {
		limited, cancel := cli.WithWaitLimit(ctx, l.wait)
		defer cancel()
		return cli.TimedOutError(fmt.Sprintf("latch %s: it did not open", l.path), l.wait, latch.Wait(limited))
	})
	cmd.Flags().VarP(&l.wait, "wait", "w", "wait no longer than this; a bare number is seconds")
	return cmd
}

func newLatchReset(streams *cli.Streams) *cobra.Command {
	return (&latchCommand{}).prepare(streams, &cobra.Command{
		Use:     "reset NAME -n N [flags]",
		Short:   "Begin a new count on a latch that has opened",
		Long:    "Begin a new count on a latch that has opened. Processes that wait for the former count still go on.",
		Example: "  lockstep latch reset started -n 3",
	}, func(_ *latchCommand, ctx context.Context, latch *barrier.Latch) error { return latch.Reset(ctx) })
}
