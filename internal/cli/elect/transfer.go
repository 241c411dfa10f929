package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// transferCommand is the subcommand that moves leadership.
type transferCommand struct {
	cli.ConnectionFlags
	wait cli.DurationFlag
}

func newTransfer(streams *cli.Streams) *cobra.Command {
	c := &transferCommand{wait: cli.DurationFlag(30 * time.Second)}
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
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return cli.EndBySignal(cmd.Context(), c.transfer(cmd, args[0], args[1]))
	})
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().VarP(&c.wait, "wait", "w", "wait no longer than this; a bare number is seconds")
	return cmd
}

func (c *transferCommand) transfer(cmd *cobra.Command, name, id string) error {
	path, err := cli.PathOf("elections", name)
	if err != nil {
		return err
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(c.Streams, client)
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), c.wait.AsDuration(), cli.ErrWaitOver)
	defer cancel()
	err = election.New(client, path).RequestTransfer(ctx, id)
	switch {
	case errors.Is(err, election.ErrNoLeader):
		return cli.WithHint(err, election.ErrNoLeader,
			cli.AdviceFor(ctx, c.Streams, client, path, "lockstep elections"))
	case errors.Is(err, framework.ErrNotFound):
		return cli.WithHint(err, framework.ErrNotFound, "see who stands by: lockstep elections "+cli.ShellWord(name))
	case err != nil:
		return cli.TimedOutError(fmt.Sprintf("election %s: %s did not become the leader", path, cli.QuoteName(id)),
			c.wait, err)
	}
	c.PrintNotice("%s leads %s", cli.QuoteName(id), cli.QuoteName(path))
	return nil
}
