package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/queue"
)

func newQueue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Put items into a queue and work on them",
		Long: `Put items into a queue and work on them: at least once each, whatever dies.

An item is a line of text, or whatever bytes other programs have put. peek and take print it as it is, or
quoted at a terminal if it holds what cannot be printed. JSON has the text in "item" and, where it is no
UTF-8, its bytes in "item_base64", and with it the item's headers and the time of its put.`,
		Example: `  lockstep queue put mails ann bob            or one a line on standard input
  lockstep queue take mails -- ./send.sh      runs it with an item on standard input
  lockstep queue len mails`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newQueuePut(), newQueueTake(), newQueueLen(), newQueuePeek(), newQueueDead(), newQueueSet(), newQueueCancel())
	return cmd
}

// queueCommand is what the subcommands of "queue" have in common.
type queueCommand struct {
	connectionFlags
	queue *queue.Queue[[]byte]
	path  string
}

// useQueue does one thing with a queue.
func (q *queueCommand) useQueue(cmd *cobra.Command, name string, opts []queue.Option, do func(context.Context, *framework.Client) error) error {
	var err error
	if q.path, err = pathOf("queues", name); err != nil {
		return err
	}
	client, err := q.connectClient(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client)
	q.queue = queue.New(client, q.path, queue.Bytes(), opts...)
	defer q.closeQueue()
	return queueCode(do(cmd.Context(), client))
}

// closeQueue finishes what was begun.
func (q *queueCommand) closeQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := q.queue.Close(ctx); err != nil {
		printWarning("%v", err)
	}
}

// queueCode finds the exit codes of a queue's errors.
func queueCode(err error) error {
	for _, m := range []struct {
		err  error
		code int
		hint string
	}{
		{queue.ErrEmpty, exitNotObtained, ""},
		{queue.ErrFull, exitNotObtained, ""},
		{queue.ErrDuplicate, exitNotObtained, ""},
		{queue.ErrTaken, exitNotObtained, ""},
		{queue.ErrDone, exitNotObtained, ""},
		{queue.ErrUnknownID, exitNotObtained, ""},
		{queue.ErrOption, exitUsage, ""},
		{queue.ErrMismatch, exitMismatch, "leave the flag out to use the queue as it is, or see \"lockstep queue set\""},
		{queue.ErrNotQueue, exitMismatch, "use another NAME: this one belongs to something else"},
		{queue.ErrNewer, exitMismatch, "use a newer lockstep"},
		{queue.ErrUnknown, exitLost, "look whether the item is there before you repeat the command"},
		{queue.ErrLost, exitLost, ""},
	} {
		if errors.Is(err, m.err) {
			return &exitError{m.code, err, m.hint}
		}
	}
	return err
}

// queueFlags are those of a queue that may have to be made.
type queueFlags struct {
	strict   bool
	capacity int
	dedup    durationFlag
	retryMin durationFlag
	retryMax durationFlag
}

func (f *queueFlags) addQueueFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.strict, "strict", false, "the queue is to keep strict order, one consumer at a time; else it is as it was made, or parallel")
	flags.IntVar(&f.capacity, "capacity", 0, "the queue is to hold no more items than this; else it is as it was made, or unbounded")
	flags.Var(&f.retryMin, "retry-min", "an item whose attempt has failed is to wait so long, and each time twice as long; else it is as it was made, or not to wait")
	flags.Var(&f.retryMax, "retry-max", "no longer than this (default a thousand times --retry-min, at most an hour)")
	flags.Var(&f.dedup, "dedup", "the queue is to remember --id for so long; else it is as it was made, or none")
}

func (f *queueFlags) queueOptions(cmd *cobra.Command) (opts []queue.Option) {
	if f.strict {
		opts = append(opts, queue.WithOrder(queue.Strict))
	}
	if cmd.Flags().Changed("capacity") {
		opts = append(opts, queue.WithCapacity(f.capacity))
	}
	if f.dedup > 0 {
		opts = append(opts, queue.WithDedup(f.dedup.asDuration()))
	}
	if cmd.Flags().Changed("retry-min") || cmd.Flags().Changed("retry-max") {
		opts = append(opts, queue.WithRetry(queue.RetryPolicy{Min: f.retryMin.asDuration(), Max: f.retryMax.asDuration()}))
	}
	return opts
}

func newQueueLen() *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:     "len NAME [flags]",
		Short:   "Count a queue's items",
		Long:    "Print the numbers of items: those to be taken or being worked on, those kept back for later, and dead letters.",
		Example: "  lockstep queue len mails --json",
		Args:    checkNameAlone,
		RunE: withExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				c, err := q.queue.Counts(ctx)
				if err != nil {
					return err
				}
				return printResult(os.Stdout, q.json, c, c.Items, c.Delayed, c.Dead)
			})
		}),
	}
	q.connectionFlags.addConnectionFlags(cmd)
	return cmd
}

func newQueueSet() *cobra.Command {
	q := &queueCommand{}
	var capacity int
	var dedup durationFlag
	cmd := &cobra.Command{
		Use:   "set NAME [flags]",
		Short: "Change a queue's bound, or how long it remembers ids",
		Long: `Change what is stored with a queue, while programs use it: they follow. A program that is started
anew with another --capacity or --dedup is refused. An unbounded queue cannot be bounded so: nobody
has counted its items.`,
		Example: "  lockstep queue set mails --capacity 5000 --dedup 2h",
		Args:    checkNameAlone,
		RunE: withExitCodes(func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if !flags.Changed("capacity") && !flags.Changed("dedup") {
				return usageError("want --capacity or --dedup")
			}
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				if flags.Changed("capacity") {
					if err := q.queue.SetCapacity(ctx, capacity); err != nil {
						return err
					}
				}
				if flags.Changed("dedup") {
					return q.queue.SetDedup(ctx, dedup.asDuration())
				}
				return nil
			})
		}),
	}
	q.connectionFlags.addConnectionFlags(cmd)
	cmd.Flags().IntVar(&capacity, "capacity", 0, "hold no more items than this")
	cmd.Flags().Var(&dedup, "dedup", "remember --id of \"lockstep queue put\" for so long")
	return cmd
}

func newQueueCancel() *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:   "cancel NAME ID [flags]",
		Short: "Take back an item that was put with an id",
		Long: `Take back an item that was put with --id. The exit code is 1 if a consumer has the item, or if it is not in
the queue any more; nothing is cancelled then. A cancelled item counts in "lockstep queue len" until a consumer comes to it.`,
		Example: "  lockstep queue cancel mails order-17",
		Args:    checkNameAnd(true, "ID"),
		RunE: withExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				return q.queue.Cancel(ctx, args[1])
			})
		}),
	}
	q.connectionFlags.addConnectionFlags(cmd)
	return cmd
}

func newQueuePeek() *cobra.Command {
	q := &queueCommand{}
	cmd := &cobra.Command{
		Use:     "peek NAME [flags]",
		Short:   "Print the first item and leave it where it is",
		Long:    "Print the first item and leave it where it is; somebody may be working on it. The exit code is 1 if there is none.",
		Example: "  lockstep queue peek mails",
		Args:    checkNameAlone,
		RunE: withExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				item, err := q.queue.Peek(ctx)
				if err != nil {
					return err
				}
				p := printedItem(item.Value)
				p.ID, p.Attempts, p.Node, p.Headers, p.Put = item.ID, item.Attempts, item.Node, item.Headers, item.EnqueuedAt.UTC()
				return printResult(os.Stdout, q.json, p, formatItem(os.Stdout, item.Value))
			})
		}),
	}
	q.connectionFlags.addConnectionFlags(cmd)
	return cmd
}

// itemJSON is an item as JSON.
type itemJSON struct {
	Item     string `json:"item"`
	Exact    []byte `json:"item_base64,omitempty"` // where the item is no UTF-8
	ID       string `json:"id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Node     string `json:"node,omitempty"`
	Attempts int    `json:"attempts,omitempty"`

	Headers map[string]string `json:"headers,omitempty"`
	Put     time.Time         `json:"put,omitzero"`
}

func printedItem(item []byte) itemJSON {
	return itemJSON{Item: string(item), Exact: bytesIfInvalid(string(item))}
}

// formatItem is an item for people at a terminal, or as it is for programs.
func formatItem(out *os.File, item []byte) string {
	if terminal.Is(out) {
		return quoteUnprintable(string(item))
	}
	return string(item)
}

func newQueueDead() *cobra.Command {
	q := &queueCommand{}
	var requeue, purge bool
	cmd := &cobra.Command{
		Use:   "dead NAME [flags]",
		Short: "List a queue's dead letters, or put them back",
		Long: `List the items that were given up: after --max-attempts of "lockstep queue take", or because a
program could not read them. A line has the node, the number of attempts, the last error, quoted, and
the item, quoted if it holds what cannot be printed; --json has its exact bytes.`,
		Example: `  lockstep queue dead mails
  lockstep queue dead mails --requeue      put all at the end of the queue again`,
		Args: checkNameAlone,
		RunE: withExitCodes(func(cmd *cobra.Command, args []string) error {
			return q.useQueue(cmd, args[0], nil, func(ctx context.Context, _ *framework.Client) error {
				return q.handleDeadLetters(ctx, requeue, purge)
			})
		}),
	}
	q.connectionFlags.addConnectionFlags(cmd)
	cmd.Flags().BoolVar(&requeue, "requeue", false, "put all at the end of the queue again")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove all")
	cmd.MarkFlagsMutuallyExclusive("requeue", "purge")
	return cmd
}

func (q *queueCommand) handleDeadLetters(ctx context.Context, requeue, purge bool) error {
	switch {
	case requeue:
		n, err := q.queue.Requeue(ctx)
		printNotice("%d put into %s again", n, q.path)
		return err
	case purge:
		n, err := q.queue.PurgeDead(ctx)
		printNotice("%d removed from %s", n, q.path)
		return err
	}
	for letter, err := range q.queue.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		p := printedItem(letter.Data)
		p.ID, p.Node, p.Attempts, p.Reason, p.Headers = letter.ID, letter.Node, letter.Attempts, letter.Reason, letter.Headers
		if p.Put = letter.EnqueuedAt; !p.Put.IsZero() {
			p.Put = p.Put.UTC()
		}
		if err := printResult(os.Stdout, q.json, p, quoteUnprintable(p.Node), p.Attempts, fmt.Sprintf("%q", p.Reason), quoteUnprintable(p.Item)); err != nil {
			return err
		}
	}
	return nil
}
