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

func newQueueList(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use:   "ls [NAME] [flags]",
		Short: "List queues with the numbers of their items",
		Long: `List the queues below /lockstep/queues, or at and below a NAME, with the numbers of their items, of
delayed ones and of dead letters. RETRIED are items that have come back: consumers have returned them or
died. MOST ATTEMPTS is the highest number of attempts that one of them has behind it, and that item's id,
or its node. Some of the items are read: with 3+ there may be more. --json has the last error, too. If no
queue is at or below a NAME that was given, the exit code is 1.`,
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
	if r.Retried.Attempts >= monitor.DefaultFailingItem {
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
