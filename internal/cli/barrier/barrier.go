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
	"github.com/lockstep-go/lockstep/internal/terminal"
)

func newBarrier(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "barrier",
		Short:   "Let processes enter and leave a phase together",
		Long:    "Let processes enter and leave a phase together, round after round.",
		Example: "  lockstep barrier enter phase -n 3 -- ./phase.sh    three at a time, together",
		Args:    cobra.NoArgs,
		RunE:    cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newBarrierEnter(streams))
	return cmd
}

// barrierEnter is the subcommand that takes part in one round of a double barrier.
type barrierEnter struct {
	cli.ConnectionFlags
	hold.Runner
	members int
	wait    cli.DurationFlag
}

func newBarrierEnter(streams *cli.Streams) *cobra.Command {
	e := &barrierEnter{}
	cmd := &cobra.Command{
		Use:   "enter NAME -n N [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Enter with the others, run a command, leave with the others",
		Long: `Wait until N processes have entered the barrier NAME, run the command in all of them, and wait
until all have left it. The same NAME may be used again at once, for the next round.

A process that dies while it waits frees its place; one that dies inside lets the others leave.
All must give the same N. N may change when no process has been at the barrier for a session
timeout. The command finds the number of the round, the same for all, in LOCKSTEP_TOKEN. If the
servers cannot be reached for too long while the command runs, the others may count this process
as dead: then the command's process group gets SIGTERM, and SIGKILL --kill-after later, and the
exit code is 75. Otherwise it is the command's own, once all have left.

Without a command lockstep prints the path and the number of the round once all are there, and
leaves at once.`,
		Example: `  lockstep barrier enter phase -n 3 -- ./phase.sh    three processes, each phase together
  lockstep barrier enter ready -n 3                  wait until three are there
  lockstep barrier enter ready -n 3 -w 30            exit with 1 if fewer come within 30 seconds`,
		Args: cli.CheckNameAnd(true),
		RunE: cli.WithExitCodes(e.enterBarrier),
	}
	e.ConnectionFlags.AddConnectionFlags(streams, cmd)
	e.Runner.AddFlags(streams, cmd)
	cmd.Flags().IntVarP(&e.members, "members", "n", 0,
		"how many processes enter together; all must give the same number")
	cmd.Flags().VarP(&e.wait, "wait", "w",
		"wait for the others no longer than this before the round begins; a bare number is seconds")
	return cmd
}

func (e *barrierEnter) enterBarrier(cmd *cobra.Command, args []string) error {
	own, command := cli.SplitAtDash(cmd, args)
	path, err := cli.PathOf("barriers", own[0])
	if err != nil {
		return err
	}
	if e.members < 1 {
		return cli.UsageError("-n %d: say how many enter together, 1 or more", e.members)
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	client, err := e.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(e.Streams, client)
	if err := e.PrepareCommand(cmd.Context(), client, path, command); err != nil {
		return err
	}
	return e.takeRound(cmd.Context(), barrier.NewDoubleBarrier(client, path, e.members))
}

// takeRound takes part in one round.
func (e *barrierEnter) takeRound(ctx context.Context, b *barrier.DoubleBarrier) error {
	if terminal.Is(e.Err) {
		e.PrintNotice("waiting at %s until %d are there", e.Path, e.members)
	}
	limited, cancel := cli.WithWaitLimit(ctx, e.wait)
	defer cancel()
	round, err := b.Enter(limited)
	if err != nil {
		return cli.TimedOutError(fmt.Sprintf("barrier %s: fewer than %d processes came", e.Path, e.members), e.wait,
			err)
	}
	code, err := e.runInRound(ctx, round)
	if left := round.Leave(ctx); err == nil {
		err = left
	}
	if err == nil || cli.EndedBySignal(ctx) && code != 0 && !errors.Is(err, procguard.ErrHoldLost) {
		return cli.ExitSilently(code)
	}
	return err
}

// runInRound runs the command in a round. Without a command it prints the round.
func (e *barrierEnter) runInRound(ctx context.Context, round *barrier.Round) (int, error) {
	if len(e.Command) == 0 {
		return 0, cli.PrintResult(e.Out, e.JSON, roundJSON{e.Path, round.Number()}, e.Path,
			cli.NamedField{Name: "round", Value: round.Number()})
	}
	code, err := e.RunCommand(ctx, round.Context(), round.Number())
	if errors.Is(err, procguard.ErrHoldLost) {
		err = fmt.Errorf("barrier %s: %w", e.Path, err)
	}
	return code, err
}

// roundJSON is what is printed of a round.
type roundJSON struct {
	Path  string `json:"path"`
	Round int64  `json:"round"`
}
