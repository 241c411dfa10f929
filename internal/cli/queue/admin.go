package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
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

func newQueueRedrive(streams *cli.Streams) *cobra.Command {
	var all bool
	cmd, _ := newQueueAct(streams, "redrive NAME [NODE...] [flags]", "Put dead letters at the end of the queue again",
		`Put dead letters at the end of their queue again, and count their attempts from the start: those
whose nodes are given, as lockstep queue dead shows them, or all with --all.`,
		"  lockstep queue redrive mails --all\n  lockstep queue redrive mails "+
			"/lockstep/queues/mails/dead/0000000000/i-0000000003",
		func(ctx context.Context, q *queueCommand, args []string) error {
			if all == (len(args) > 1) {
				return cli.UsageError("want the nodes of dead letters, or --all")
			}
			n, err := q.queue.Requeue(ctx, args[1:]...)
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

func newQueueList(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use:   "ls [NAME] [flags]",
		Short: "List queues with the numbers of their items",
		Long: `List the queues below /lockstep/queues, or at and below a NAME, with the numbers of their items, of delayed ones
and of dead letters. RETRIED are items that have come back: consumers have returned them or died. MOST ATTEMPTS is
the highest number of attempts that one of them has behind it, and that item's id, or its node. Some of the items
are read: with 3+ there may be more. --json has the last error, too. If no queue is at or below a NAME that was
given, the exit code is 1.`,
		Example: "  lockstep queue ls\n  lockstep queue ls /apps --json",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		root, err := cli.RootOf("queues", args)
		if err != nil {
			return err
		}
		return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
			return listQueues(ctx, streams, client, root, len(args) > 0 && root != "/", c.JSON)
		})
	})
	c.AddConnectionFlags(streams, cmd)
	return cmd
}

// listQueues prints the queues below a path. What cannot be read is warned about, and decides the
// exit code. A NAME without any queue may be mistyped.
func listQueues(ctx context.Context, streams *cli.Streams, client *framework.Client, root string, named,
	asJSON bool) error {
	t := cli.NewTable("QUEUE", "ITEMS", "DELAYED", "DEAD", "RETRIED", "MOST ATTEMPTS", "STATE")
	var unread error
	found := 0
	for r, err := range queue.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge), r.Path != "" && err != nil:
			streams.PrintWarning("%v", err)
			unread = err
			continue
		case err != nil:
			return err
		}
		found++
		if asJSON {
			if err := cli.PrintResult(streams.Out, true, r); err != nil {
				return err
			}
			continue
		}
		state := cli.DimCell("")
		if r.Paused {
			state = cli.YellowCell("paused")
		}
		t.AddRow(cli.BoldCell(cli.QuoteName(strings.TrimPrefix(r.Path, cli.QueuesDir+"/"))),
			cli.PlainCell(strconv.Itoa(r.Items)),
			cli.PlainCell(cli.FormatCount(r.Delayed)),
			cli.RedCell(cli.FormatCount(r.Dead)), RetriedCell(r.Retried), FailingCell(r), state)
	}
	t.FitColumn(5, lineWidth)
	if err := t.PrintTo(streams.Out); err != nil {
		return err
	}
	if found == 0 && named && unread == nil {
		return cli.NothingFoundError(ctx, streams, client, "queues", root, "lockstep queue ls")
	}
	if found == 0 && !asJSON && unread == nil {
		cli.PrintNone(ctx, streams, "queues", root, "lockstep queue ls",
			func(ctx context.Context) iter.Seq2[string, error] { return queue.Find(ctx, client, "/") })
	}
	return cli.ExitCodeOfPrinted(streams, unread)
}

// lineWidth is how wide the list of queues is at most, as far as possible.
const lineWidth = 80

// FailingCell tells how often the item was delivered that has come back most often, and which one
// it is.
func FailingCell(r queue.Report) cli.Cell {
	if r.Retried.Attempts == 0 {
		return cli.DimCell("")
	}
	which := r.Retried.ID
	if which == "" {
		which = strings.TrimPrefix(r.Retried.Node, r.Path+"/")
	}
	paint := cli.YellowCell
	if r.Retried.Attempts >= monitor.DefaultAttempts {
		paint = cli.RedCell
	}
	return paint(fmt.Sprintf("%d: %s", r.Retried.Attempts, which))
}

// RetriedCell is how many items have come back.
func RetriedCell(r queue.Retried) cli.Cell {
	text := cli.FormatCount(r.Items)
	if r.Items > 0 && r.More {
		text += "+"
	}
	return cli.PlainCell(text)
}
