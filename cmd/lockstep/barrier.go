package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

func newBarrier() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "barrier",
		Short:   "Let processes enter and leave a phase together",
		Long:    "Let processes enter and leave a phase together, round after round.",
		Example: "  lockstep barrier enter phase -n 3 -- ./phase.sh    three at a time, together",
		Args:    cobra.NoArgs,
		RunE:    coded(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newBarrierEnter())
	return cmd
}

// barrierEnter is the subcommand that takes part in one round of a double barrier.
type barrierEnter struct {
	connection
	runner
	members int
	wait    duration
}

func newBarrierEnter() *cobra.Command {
	e := &barrierEnter{}
	cmd := &cobra.Command{
		Use:   "enter NAME -n N [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Enter with the others, run a command, leave with the others",
		Long: `Wait until N processes have entered the barrier NAME, run the command in all of them, and wait
until all have left it. The same NAME may be used again at once, for the next round.

A process that dies while it waits frees its place; one that dies inside lets the others leave.
All must give the same N, which may change once nobody has been there for a session timeout.
The command finds the number of the round, the same for all, in LOCKSTEP_TOKEN. If this
process is taken for dead while the command runs, because the servers have not been reached
for too long, the command's process group gets SIGTERM, and SIGKILL --kill-after later; the
exit code is 75. Else it is the command's own, once all have left.

Without a command the path and the number of the round are printed once all are there, and
the process leaves at once.`,
		Example: `  lockstep barrier enter phase -n 3 -- ./phase.sh    three processes, each phase together
  lockstep barrier enter ready -n 3                  wait until three are there
  lockstep barrier enter ready -n 3 -w 30            exit with 1 if they are not within 30 seconds`,
		Args: nameAnd(true),
		RunE: coded(e.main),
	}
	e.connection.register(cmd)
	e.runner.register(cmd)
	cmd.Flags().IntVarP(&e.members, "members", "n", 0, "how many enter together; the same number for all")
	cmd.Flags().VarP(&e.wait, "wait", "w", "wait for the others no longer than this before the round begins; a bare number is seconds")
	return cmd
}

func (e *barrierEnter) main(cmd *cobra.Command, args []string) error {
	own, command := split(cmd, args)
	path, err := pathOf("barriers", own[0])
	if err != nil {
		return err
	}
	if e.members < 1 {
		return usage("-n %d: say how many enter together, 1 or more", e.members)
	}
	if err := find(command); err != nil {
		return err
	}
	client, err := e.connect(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client)
	if err := e.prepare(cmd.Context(), client, path, command); err != nil {
		return err
	}
	return barrierCode(e.take(cmd.Context(), barrier.NewDoubleBarrier(client, path, e.members)))
}

// take takes part in one round.
func (e *barrierEnter) take(ctx context.Context, b *barrier.DoubleBarrier) error {
	if terminal.Is(os.Stderr) {
		say("waiting at %s until %d are there", e.path, e.members)
	}
	patience, cancel := patient(ctx, e.wait)
	defer cancel()
	round, err := b.Enter(patience)
	if err != nil {
		return waitOver(fmt.Sprintf("barrier %s: %d did not come together", e.path, e.members), e.wait, err)
	}
	code, err := e.inside(ctx, round)
	if left := round.Leave(ctx); err == nil {
		err = left
	}
	if err == nil || endedBySignal(ctx) && code != 0 {
		return silent(code)
	}
	return err
}

// inside runs the command in a round, or prints it.
func (e *barrierEnter) inside(ctx context.Context, round *barrier.Round) (int, error) {
	if len(e.command) == 0 {
		return 0, put(os.Stdout, e.json, entered{e.path, round.Number()}, e.path, round.Number())
	}
	code, err := e.run(ctx, grant{round.Context(), round.Number()})
	if errors.Is(err, procguard.ErrHoldLost) {
		err = fmt.Errorf("barrier %s: %w", e.path, err)
	}
	return code, err
}

// entered is what is printed of a round.
type entered struct {
	Path  string `json:"path"`
	Round int64  `json:"round"`
}

// patient is ctx, or ends after a time that was given.
func patient(ctx context.Context, wait duration) (context.Context, context.CancelFunc) {
	if wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(wait), errWaitOver)
}

var errWaitOver = errors.New("the time given with -w is over")

// waitOver makes the end of -w's time the reason why something was given up, and says so once. Other errors stay.
func waitOver(what string, wait duration, err error) error {
	if !errors.Is(err, errWaitOver) {
		return err
	}
	return &exit{exitNotObtained, fmt.Errorf("%s within %v, the time that -w gives", what, wait.time()), ""}
}

// barrierCode finds the exit codes of a barrier's errors.
func barrierCode(err error) error {
	for _, m := range []struct {
		err  error
		code int
		hint string
	}{
		{barrier.ErrRaised, exitNotObtained, "wait until it falls: lockstep gate wait NAME"},
		{barrier.ErrSize, exitUsage, ""},
		{barrier.ErrMismatch, exitMismatch, "all who use a NAME must give the same -n"},
		{barrier.ErrTooMany, exitMismatch, "more processes than -n says use this NAME"},
		{barrier.ErrForeign, exitMismatch, "use another NAME: this one belongs to something else"},
		{barrier.ErrNewer, exitMismatch, "use a newer lockstep"},
		{framework.ErrSessionLost, exitLost, "to the others this process has died; run the command again if it is safe to repeat"},
	} {
		if errors.Is(err, m.err) && !errors.Is(err, procguard.ErrHoldLost) {
			return &exit{m.code, err, m.hint}
		}
	}
	return err
}
