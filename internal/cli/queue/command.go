package queue

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/queue"
)

// queueCommand is what the subcommands of "queue" have in common.
type queueCommand struct {
	cli.ConnectionFlags
	queue *queue.Queue[[]byte]
	path  string
}

// useQueue does one thing with a queue.
func (q *queueCommand) useQueue(cmd *cobra.Command, name string, opts []queue.Option,
	do func(context.Context, *framework.Client) error) error {
	var err error
	if q.path, err = cli.PathOf("queues", name); err != nil {
		return err
	}
	client, err := q.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(q.Streams, client)
	q.queue = queue.New(client, q.path, codec.Bytes(), opts...)
	defer q.closeQueue()
	return cli.EndBySignal(cmd.Context(), do(cmd.Context(), client))
}

// closeQueue closes the queue, which gives back unfinished items.
func (q *queueCommand) closeQueue() {
	ctx, cancel := context.WithTimeout(context.Background(), cli.CloseTimeout)
	defer cancel()
	if err := q.queue.Close(ctx); err != nil {
		q.PrintWarning("%v", err)
	}
}

// queueFlags are the flags of a queue that the command may create.
type queueFlags struct {
	strict   bool
	capacity int
	dedup    cli.DurationFlag
	retryMin cli.DurationFlag
	retryMax cli.DurationFlag
}

func (f *queueFlags) addQueueFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.strict, "strict", false,
		"keep strict order, one consumer at a time (default as the queue was created, else parallel)")
	flags.IntVar(&f.capacity, "capacity", 0,
		"hold no more items than this (default as the queue was created, else unbounded)")
	flags.Var(&f.retryMin, "retry-min",
		"how long an item waits after its first failed attempt; it doubles with each one (default as the queue was "+
			"created, else no wait)")
	flags.Var(&f.retryMax, "retry-max",
		"the longest wait after a failed attempt (default a thousand times --retry-min, at most an hour)")
	flags.Var(&f.dedup, "dedup", "remember each --id for this time (default as the queue was created, else none)")
}

func (f *queueFlags) queueOptions(cmd *cobra.Command) (opts []queue.Option) {
	if f.strict {
		opts = append(opts, queue.WithOrder(queue.Strict))
	}
	if cmd.Flags().Changed("capacity") {
		opts = append(opts, queue.WithCapacity(f.capacity))
	}
	if f.dedup > 0 {
		opts = append(opts, queue.WithDedup(f.dedup.AsDuration()))
	}
	if cmd.Flags().Changed("retry-min") || cmd.Flags().Changed("retry-max") {
		opts = append(opts, queue.WithRetry(queue.RetryPolicy{Min: f.retryMin.AsDuration(),
			Max: f.retryMax.AsDuration()}))
	}
	return opts
}

// requireQueue returns an error if the queue does not exist: the operation would create one, under
// a NAME that may be mistyped.
func (q *queueCommand) requireQueue(ctx context.Context, client *framework.Client) error {
	report, err := queue.Inspect(ctx, client, q.path)
	switch {
	case err != nil:
		return err
	case report.Missing:
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("there is no queue %s: the first put creates it", q.path),
			cli.AdviceFor(ctx, q.Streams, client, q.path, "lockstep queue ls"))
	}
	return nil
}

// itemJSON is an item that was taken or looked at, as JSON.
type itemJSON struct {
	reportjson.Item
	ID       string            `json:"id,omitempty"`
	Kind     string            `json:"kind,omitempty"`
	Attempt  int               `json:"attempt,omitempty"`
	Node     string            `json:"node,omitempty"`
	Attempts int               `json:"attempts,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Enqueued time.Time         `json:"enqueued,omitzero"`
}

// formatItem returns an item as it is, or quoted if need be at a terminal.
func formatItem(out *os.File, item []byte) string {
	if terminal.Is(out) {
		return cli.QuoteUnprintable(string(item))
	}
	return string(item)
}
