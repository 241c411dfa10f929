// Package queue has the subcommands of queues.
package queue

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/queue"
)

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Put items into a queue and work on them",
		Long: `Put items into a queue and work on them. Each item is worked on at least once, even if processes die.

An item is a line of text, or any bytes that other programs have put. peek and take print it as it is; at
a terminal they quote an item that has unprintable characters. JSON has the text in "item", the bytes in
"item_base64" if they are not UTF-8, the item's headers and the time of its put.`,
		Example: `  lockstep queue put mails ann bob            or one a line on standard input
  lockstep queue take mails -- ./send.sh      runs it with an item on standard input
  lockstep queue len mails`,
		Args: cobra.NoArgs,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(newQueuePut(streams), newQueueTake(streams), newQueueLen(streams), newQueuePeek(streams),
		newQueueDead(streams), newQueueSet(streams), newQueueCancel(streams))
	cmd.AddCommand(newQueueList(streams), newQueuePause(streams), newQueueResume(streams), newQueuePurge(streams),
		newQueueRequeue(streams), newQueueInFlight(streams), newQueueReturn(streams)) // for operators
	return cmd
}

func newQueueLen(streams *cli.Streams) *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:   "len NAME [flags]",
		Short: "Count a queue's items",
		Long: "Print three numbers: items to be taken or being worked on, delayed items, and dead letters. At a " +
			"terminal they are named.",
		Example: "  lockstep queue len mails --json",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, client *framework.Client) error {
				report, err := queue.Inspect(ctx, client, q.path)
				if err != nil {
					return err
				}
				c := report.Counts
				if report.Missing {
					streams.PrintNotice("there is no queue %s: the first put creates it", q.path)
				}
				if terminal.Is(streams.Out) && !q.JSON {
					return cli.PrintResult(streams.Out, false, nil,
						fmt.Sprintf("%s, %d delayed, %s", cli.FormatNumber(c.Items, "item"), c.Delayed,
							cli.FormatNumber(c.Dead, "dead letter")))
				}
				return cli.PrintResult(streams.Out, q.JSON, c, c.Items, c.Delayed, c.Dead)
			})
		}),
	}
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func newQueueSet(streams *cli.Streams) *cobra.Command {
	q := &queueCommand{}
	var capacity int
	var dedup, retryMin, retryMax cli.DurationFlag
	var noRetry bool
	cmd := &cobra.Command{
		Use:   "set NAME [flags]",
		Short: "Change a queue's capacity, its retry policy, or how long it remembers ids",
		Long: `Change settings that are stored with a queue. Programs that use the queue follow. A program that is
started later with other settings is refused. An unbounded queue cannot get a capacity in this way, since its
items were not counted. Of the retry policy, what no flag names stays as it is stored.`,
		Example: "  lockstep queue set mails --capacity 5000 --dedup 2h\n" +
			"  lockstep queue set mails --retry-min 10s --retry-max 10m",
		Args: cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			setRetry := flags.Changed("retry-min") || flags.Changed("retry-max") || noRetry
			if !flags.Changed("capacity") && !flags.Changed("dedup") && !setRetry {
				return cli.UsageError("want --capacity, --dedup, --retry-min, --retry-max or --no-retry")
			}
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, client *framework.Client) error {
				if err := q.requireQueue(ctx, client); err != nil {
					return err
				}
				if flags.Changed("capacity") {
					if err := q.queue.SetCapacity(ctx, capacity); err != nil {
						return err
					}
				}
				if flags.Changed("dedup") {
					if err := q.queue.SetDedup(ctx, dedup.AsDuration()); err != nil {
						return err
					}
				}
				if !setRetry {
					return nil
				}
				var policy queue.RetryPolicy
				if !noRetry {
					if _, err := q.queue.Paused(ctx); err != nil { // reads what is stored
						return err
					}
					policy, _ = q.queue.RetryPolicy()
					if flags.Changed("retry-min") {
						policy.Min = retryMin.AsDuration()
					}
					if flags.Changed("retry-max") {
						policy.Max = retryMax.AsDuration()
					}
				}
				return q.queue.SetRetry(ctx, policy)
			})
		}),
	}
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().IntVar(&capacity, "capacity", 0, "hold no more items than this")
	cmd.Flags().Var(&dedup, "dedup", "remember each --id of \"lockstep queue put\" for this time")
	cmd.Flags().Var(&retryMin, "retry-min",
		"how long an item waits after its first failed attempt; it doubles with each one")
	cmd.Flags().Var(&retryMax, "retry-max", "the longest wait after a failed attempt")
	cmd.Flags().BoolVar(&noRetry, "no-retry", false, "remove the retry policy: each program waits as it says itself")
	cmd.MarkFlagsMutuallyExclusive("no-retry", "retry-min")
	cmd.MarkFlagsMutuallyExclusive("no-retry", "retry-max")
	return cmd
}

func newQueueCancel(streams *cli.Streams) *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:   "cancel NAME ID [flags]",
		Short: "Take back an item that was put with an id",
		Long: `Take back an item that was put with --id. The exit code is 1 if a consumer has the item, or if it is
not in the queue any more; nothing is cancelled then. A cancelled item counts in "lockstep queue len"
until a consumer reaches it.`,
		Example: "  lockstep queue cancel mails order-17",
		Args:    cobra.ExactArgs(2),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, client *framework.Client) error {
				if err := q.requireQueue(ctx, client); err != nil {
					return err
				}
				return q.queue.Cancel(ctx, args[1])
			})
		}),
	}
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func newQueuePeek(streams *cli.Streams) *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:   "peek NAME [flags]",
		Short: "Print the first item and leave it where it is",
		Long: "Print the first item and leave it where it is; a consumer may be working on it. The exit code is " +
			"1 if there is none.",
		Example: "  lockstep queue peek mails",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				item, err := q.queue.Peek(ctx)
				if err != nil {
					return err
				}
				return cli.PrintResult(streams.Out, q.JSON, itemJSON{Item: reportjson.NewItem(item.Value), ID: item.ID,
					Kind: item.Kind, Attempts: item.Attempts, Node: item.Node, Headers: item.Headers,
					Enqueued: reportjson.Time(item.Enqueued)}, formatItem(streams.Out, item.Value))
			})
		}),
	}
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func newQueueDead(streams *cli.Streams) *cobra.Command {
	q := &queueCommand{}
	var purge bool
	cmd := &cobra.Command{
		Use:   "dead NAME [flags]",
		Short: "List a queue's dead letters, or remove them",
		Long: `List the dead letters: items that have failed --max-attempts of "lockstep queue take", have expired, or
could not be decoded by a program. A line has the node, the number of attempts, the last error, quoted, and
the item, quoted if it has unprintable characters; --json has its exact bytes. "lockstep queue requeue" puts
dead letters into the queue again.`,
		Example: "  lockstep queue dead mails",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, client *framework.Client) error {
				if err := q.requireQueue(ctx, client); err != nil {
					return err
				}
				return q.handleDeadLetters(ctx, purge)
			})
		}),
	}
	q.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().BoolVar(&purge, "purge", false, "remove all")
	return cmd
}

func (q *queueCommand) handleDeadLetters(ctx context.Context, purge bool) error {
	if purge {
		n, err := q.queue.PurgeDead(ctx)
		q.PrintNotice("removed %s from %s", cli.FormatNumber(n, "dead letter"), q.path)
		return err
	}
	n := 0
	for letter, err := range q.queue.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		n++
		if err := cli.PrintResult(q.Out, q.JSON, letter, cli.QuoteUnprintable(letter.Node),
			cli.NamedField{Name: "attempts", Value: letter.Attempts},
			fmt.Sprintf("%q", letter.LastError), cli.QuoteUnprintable(string(letter.Data))); err != nil {
			return err
		}
	}
	if n == 0 {
		q.PrintNotice("%s has no dead letters", q.path)
	}
	return nil
}
