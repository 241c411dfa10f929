package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
)

// transferCommand is the subcommand that moves leadership.
type transferCommand struct {
	connectionFlags
	wait durationFlag
}

func newTransfer(streams *Streams) *cobra.Command {
	c := &transferCommand{wait: durationFlag(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "transfer NAME ID [flags]",
		Short: "Ask the leader to hand over to a candidate",
		Long: `Ask the leader to hand over to the first candidate with an id, and wait until that one leads. The
leader's command or function is told to end, and ends first, so that two never lead at once. The other
candidates keep their order. A leader that does not use Lockstep, such as a Java program, ignores the
request; then the exit code is 1 when the time of -w is over.`,
		Example: "  lockstep elections billing\n  lockstep elections transfer billing web-2-711",
		Args:    cobra.ExactArgs(2),
	}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		return endBySignal(cmd.Context(), c.transfer(cmd, args[0], args[1]))
	})
	c.connectionFlags.addConnectionFlags(streams, cmd)
	cmd.Flags().VarP(&c.wait, "wait", "w", "wait no longer than this; a bare number is seconds")
	return cmd
}

func (c *transferCommand) transfer(cmd *cobra.Command, name, id string) error {
	path, err := pathOf("elections", name)
	if err != nil {
		return err
	}
	client, err := c.connectClient(cmd)
	if err != nil {
		return err
	}
	defer closeClient(c.Streams, client)
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), c.wait.asDuration(), errWaitOver)
	defer cancel()
	err = election.New(client, path).RequestTransfer(ctx, id)
	switch {
	case errors.Is(err, election.ErrNoLeader):
		return exitWith(exitNotObtained, err, adviceFor(ctx, c.Streams, client, path, "lockstep elections"))
	case errors.Is(err, election.ErrNoCandidate):
		return exitWith(exitNotObtained, err, "see who stands by: lockstep elections "+shellWord(name))
	case err != nil:
		return timedOutError(fmt.Sprintf("election %s: %s did not become the leader", path, quoteName(id)), c.wait, err)
	}
	c.printNotice("%s leads %s", quoteName(id), quoteName(path))
	return nil
}
