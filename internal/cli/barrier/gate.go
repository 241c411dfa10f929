package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/procguard"
)

func newGate(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Raise a gate that others wait for until it is lowered",
		Long: `Raise a gate that others wait for until it is lowered.

A gate has the layout of Apache Curator's DistributedBarrier.`,
		Example: `  lockstep gate raise maintenance
  lockstep gate wait maintenance && ./work.sh
  lockstep gate lower maintenance`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newGateRaise(streams), newGateLower(streams), newGateWait(streams))
	return cmd
}

// gateCommand is what the subcommands of "gate" have in common.
type gateCommand struct {
	cli.ConnectionFlags
	hold.Runner
	wait cli.DurationFlag
}

func newGateRaise(streams *cli.Streams) *cobra.Command {
	g := &gateCommand{}
	cmd := &cobra.Command{
		Use:   "raise NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Raise a gate until it is lowered, or while a command runs",
		Long: `Raise a gate. It stays up until "lockstep gate lower", also if this machine dies.

With a command the gate is up while the command runs, and goes down when the command ends or this
machine dies; the exit code is 1 if the gate is up already. If the gate goes down earlier, because
the servers could not be reached for too long or another process has lowered it, the command's
process group gets SIGTERM, and SIGKILL --kill-after later; the exit code is 75.`,
		Example: `  lockstep gate raise maintenance
  lockstep gate raise maintenance -- ./migrate.sh`,
		Args: cli.CheckNameAnd(true),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return g.useGate(cmd, args,
				g.raiseGate)
		}),
	}
	g.ConnectionFlags.AddConnectionFlags(streams, cmd)
	g.Runner.AddFlags(streams, cmd)
	return cmd
}

func newGateLower(streams *cli.Streams) *cobra.Command {
	g := &gateCommand{}
	cmd := &cobra.Command{
		Use:     "lower NAME [flags]",
		Short:   "Lower a gate, also one that another process has raised",
		Long:    "Lower a gate, also one that another process has raised. A gate that is down stays down.",
		Example: "  lockstep gate lower maintenance",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return g.useGate(cmd, args, (*barrier.Gate).Lower)
		}),
	}
	g.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func newGateWait(streams *cli.Streams) *cobra.Command {
	g := &gateCommand{}
	cmd := &cobra.Command{
		Use:   "wait NAME [flags]",
		Short: "Wait until a gate is down",
		Long: "Wait until a gate is down, or has been down for a moment. The wait goes on while the servers cannot " +
			"be reached.",
		Example: `  lockstep gate wait maintenance
  lockstep gate wait maintenance -w 30     exit with 1 if it is still up after 30 seconds`,
		Args: cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return g.useGate(cmd, args, func(gate *barrier.Gate, ctx context.Context) error {
				limited, cancel := cli.WithWaitLimit(ctx, g.wait)
				defer cancel()
				return cli.TimedOutError(fmt.Sprintf("gate %s: it was not lowered", g.Path), g.wait, gate.Wait(limited))
			})
		}),
	}
	g.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().VarP(&g.wait, "wait", "w", "wait no longer than this; a bare number is seconds")
	return cmd
}

// useGate does one thing with a gate.
func (g *gateCommand) useGate(cmd *cobra.Command, args []string, do func(*barrier.Gate, context.Context) error) error {
	own, command := cli.SplitAtDash(cmd, args)
	path, err := cli.PathOf("gates", own[0])
	if err != nil {
		return err
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	client, err := g.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(g.Streams, client)
	if err := g.PrepareCommand(cmd.Context(), client, path, command); err != nil {
		return err
	}
	return do(barrier.NewGate(client, path), cmd.Context())
}

// raiseGate raises the gate. With a command it holds the gate while the command runs.
func (g *gateCommand) raiseGate(gate *barrier.Gate, ctx context.Context) error {
	if len(g.Command) == 0 {
		return gate.Raise(ctx)
	}
	lease, err := gate.Hold(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // the client goes on to lower the gate, and its end is waited for
	code, err := g.RunCommand(ctx, lease.Context(), lease.Token())
	if errors.Is(err, procguard.ErrHoldLost) {
		return fmt.Errorf("gate %s: %w", g.Path, err)
	}
	if err != nil {
		return err
	}
	return cli.ExitSilently(code)
}
