package queue

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// newQueueAct is a subcommand that does something to a queue that exists.
func newQueueAct(streams *cli.Streams, use, short, long, example string, do func(ctx context.Context, q *queueCommand,
	args []string) error) (
	*cobra.Command, *queueCommand) {
	q := &queueCommand{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1)}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return q.useQueue(cmd, args[0], nil, func(ctx context.Context, client *framework.Client) error {
			if err := q.requireQueue(ctx, client); err != nil {
				return err
			}
			return do(ctx, q, args)
		})
	})
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd, q
}

func newQueuePause(streams *cli.Streams) *cobra.Command {
	cmd, _ := newQueueAct(streams, "pause NAME [flags]", "Stop consumers from taking items until the queue is resumed",
		"Stop consumers from taking items until the queue is resumed. Puts go on, and so does the work on items "+
			"that were taken.",
		"  lockstep queue pause mails", func(ctx context.Context, q *queueCommand, args []string) error {
			if err := q.queue.Pause(ctx); err != nil {
				return err
			}
			streams.PrintNotice("%s: paused", args[0])
			return nil
		})
	return cmd
}

func newQueueResume(streams *cli.Streams) *cobra.Command {
	cmd, _ := newQueueAct(streams, "resume NAME [flags]", "Let consumers take items from a paused queue again", "",
		"  lockstep queue resume mails",
		func(ctx context.Context, q *queueCommand, args []string) error {
			if err := q.queue.Resume(ctx); err != nil {
				return err
			}
			streams.PrintNotice("%s: resumed", args[0])
			return nil
		})
	return cmd
}

func newQueuePurge(streams *cli.Streams) *cobra.Command {
	var yes bool
	cmd, _ := newQueueAct(streams, "purge NAME [flags]", "Remove all items of a queue",
		`Remove the items that are in the queue now: also delayed ones, and those that consumers work on, whose
acknowledgement then fails. Dead letters stay: see lockstep queue dead --purge. lockstep asks before it
removes items, unless -y is given.`, "  lockstep queue purge mails -y",
		func(ctx context.Context, q *queueCommand, args []string) error {
			c, err := q.queue.Counts(ctx)
			if err != nil {
				return err
			}
			if !yes {
				if err := cli.Confirm(ctx, streams, fmt.Sprintf("%s has %d items and %d delayed ones. Remove them?",
					q.path,
					c.Items,
					c.Delayed)); err != nil {
					return err
				}
			}
			n, err := q.queue.Purge(ctx)
			streams.PrintNotice("%s: %d items removed", args[0], n)
			return err
		})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newQueueRequeue(streams *cli.Streams) *cobra.Command {
	var all bool
	cmd, _ := newQueueAct(streams, "requeue NAME [NODE...] [flags]", "Put dead letters at the end of the queue again",
		`Put dead letters at the end of their queue again, and count their attempts from the start: those
whose nodes are given, as lockstep queue dead shows them, or all with --all.`,
		"  lockstep queue requeue mails --all\n  lockstep queue requeue mails "+
			"/lockstep/queues/mails/dead/0000000000/i-0000000003",
		func(ctx context.Context, q *queueCommand, args []string) error {
			if all == (len(args) > 1) {
				return cli.UsageError("want the nodes of dead letters, or --all")
			}
			var n int
			var err error
			if all {
				n, err = q.queue.Requeue(ctx)
			} else {
				n, err = q.queue.RequeueLetters(ctx, args[1:]...)
			}
			streams.PrintNotice("%s: put %s into the queue again", args[0], cli.FormatNumber(n, "dead letter"))
			if err == nil && n < len(args)-1 {
				err = cli.ExitWith(cli.ExitMissing, fmt.Errorf("%d of the nodes are no dead letters of %s",
					len(args)-1-n,
					q.path), "see which there are: lockstep queue dead "+cli.ShellWord(args[0]))
			}
			return err
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters")
	return cmd
}
