package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/queue"
)

// queuePut is the subcommand that puts items.
type queuePut struct {
	queueCommand
	queueFlags
	priority int
	delay    cli.DurationFlag
	expiry   cli.DurationFlag
	id       string
	kind     string
	headers  []string
	nonblock bool
}

func newQueuePut(streams *cli.Streams) *cobra.Command {
	p := &queuePut{}
	cmd := &cobra.Command{
		Use:   "put NAME [ITEM...] [flags]",
		Short: "Put items at the end of a queue",
		Long: `Put items at the end of a queue: the arguments, or the lines of standard input. lockstep ends when
the servers have all items. If it fails or a signal ends it, the items before are in the queue.

The first command or program that uses a queue creates it and stores --strict, --capacity, --dedup and
--retry-min and --retry-max; later users give the same values or none. If the queue is full, lockstep waits, or ends
with 1 under --nonblock.`,
		Example: `  lockstep queue put mails ann bob
  lockstep queue put mails < mails.txt
  lockstep queue put mails ann --delay 10m --header tenant=7
  lockstep queue put orders "$ORDER" --dedup 1h --id "$ORDER_ID"    exit with 1 if it was put before`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("want a NAME")
			}
			return nil
		},
		RunE: cli.WithExitCodes(p.putItems),
	}
	p.ConnectionFlags.AddConnectionFlags(streams, cmd)
	p.queueFlags.addQueueFlags(cmd)
	f := cmd.Flags()
	f.IntVar(&p.priority, "priority", 0, "priority of the items, 0 to 9; consumers take higher ones first")
	f.Var(&p.delay, "delay", "delay the items by this time; a bare number is seconds")
	f.Var(&p.expiry, "expiry",
		"make the items dead letters if no consumer has taken them within this time; a bare number is seconds")
	f.StringVar(&p.id, "id", "",
		"the item's id: a queue that was created with --dedup accepts it once, and other queues refuse it")
	f.StringVar(&p.kind, "kind", "", "the kind of the items, for consumers that have a handler for each kind")
	f.StringArrayVar(&p.headers, "header", nil, "header NAME=VALUE of the items (repeatable)")
	f.BoolVarP(&p.nonblock, "nonblock", "n", false, "do not wait if the queue is full")
	return cmd
}

func (p *queuePut) putItems(cmd *cobra.Command, args []string) error {
	opts := p.queueFlags.queueOptions(cmd)
	if p.nonblock {
		opts = append(opts, queue.WithFailWhenFull())
	}
	headers, err := p.headersOf()
	if err != nil {
		return err
	}
	how := []queue.PutOption{queue.WithPriority(p.priority), queue.WithDelay(p.delay.AsDuration()),
		queue.WithHeaders(headers)}
	if cmd.Flags().Changed("expiry") {
		how = append(how, queue.WithExpiry(p.expiry.AsDuration()))
	}
	if cmd.Flags().Changed("kind") {
		how = append(how, queue.WithKind(p.kind))
	}
	if cmd.Flags().Changed("id") {
		how = append(how, queue.WithID(p.id))
		if len(args) != 2 {
			return cli.UsageError("--id is for one ITEM, got %d", len(args)-1)
		}
	}
	return p.useQueue(cmd, args[0], opts, func(ctx context.Context, _ *framework.Client) (err error) {
		count := cli.NewProgress(p.Streams, "put into "+p.path)
		defer func() { count.PrintTotal(err != nil && !cli.EndedBySignal(ctx)) }()
		if len(args) > 1 {
			return p.putArguments(ctx, args[1:], how, count)
		}
		return p.putLines(ctx, p.In, how, count)
	})
}

// headersOf reads what --header gives.
func (p *queuePut) headersOf() (map[string]string, error) {
	headers := map[string]string{}
	for _, h := range p.headers {
		name, value, ok := strings.Cut(h, "=")
		if _, twice := headers[name]; !ok || name == "" || twice {
			return nil, cli.UsageError("--header %q: want NAME=VALUE, each NAME once", h)
		}
		headers[name] = value
	}
	return headers, nil
}

func (p *queuePut) putArguments(ctx context.Context, items []string, how []queue.PutOption,
	count *cli.ProgressCounter) error {
	for _, item := range items {
		if err := p.queue.Put(ctx, []byte(item), how...); err != nil {
			return err
		}
		count.AddCount(1)
	}
	return nil
}

// Limits of a line, and of the lines that are put together.
const (
	maxLine       = 1 << 20
	maxBatchBytes = 256 << 10
	maxBatchLines = 500
)

// putLines puts lines. It puts the lines together that can be read at once. It ends with ctx, also
// while the input is open and silent.
func (p *queuePut) putLines(ctx context.Context, in io.Reader, how []queue.PutOption,
	count *cli.ProgressCounter) error {
	lines, failed := readLinesAhead(ctx, in)
	for {
		var line []byte
		var open bool
		select {
		case line, open = <-lines:
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !open:
			return <-failed
		}
		batch, size := [][]byte{line}, len(line)
		for more := true; more && size < maxBatchBytes && len(batch) < maxBatchLines; {
			select {
			case next, ok := <-lines:
				if more = ok; ok {
					batch, size = append(batch, next), size+len(next)
				}
			default:
				more = false
			}
		}
		if err := p.putBatch(ctx, batch, how, count); err != nil {
			return err
		}
	}
}

// putBatch puts lines together, or one by one if they do not fit in together.
func (p *queuePut) putBatch(ctx context.Context, batch [][]byte, how []queue.PutOption,
	count *cli.ProgressCounter) error {
	if len(batch) > 1 {
		err := p.queue.PutBatch(ctx, batch, how...)
		if err == nil {
			count.AddCount(len(batch))
		}
		if !errors.Is(err, queue.ErrFull) && !errors.Is(err, framework.ErrTooLarge) {
			return err
		}
	}
	for _, line := range batch {
		if err := p.queue.Put(ctx, line, how...); err != nil {
			return err
		}
		count.AddCount(1)
	}
	return nil
}

// readLinesAhead reads lines ahead, so that a slow writer's lines are put as they come.
func readLinesAhead(ctx context.Context, in io.Reader) (<-chan []byte, <-chan error) {
	lines, failed := make(chan []byte, maxBatchLines), make(chan error, 1)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxLine)
		count := 0
		for ; s.Scan(); count++ {
			select {
			case lines <- append([]byte{}, s.Bytes()...):
			case <-ctx.Done():
				return
			}
		}
		err := s.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("%w: line %d of standard input has more than %d bytes: an item cannot have so many",
				framework.ErrTooLarge, count+1, maxLine)
		}
		failed <- err
	}()
	return lines, failed
}
