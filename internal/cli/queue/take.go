package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/queue"
)

// queueTake is the subcommand that takes items.
type queueTake struct {
	queueCommand
	hold.Runner
	number      int
	follow      bool
	wait        cli.DurationFlag
	retryAfter  cli.DurationFlag
	timeout     cli.DurationFlag
	maxAttempts int
	byPolicy    bool // --retry-after was not given
	last        int  // the exit code of the last command that failed
}

func newQueueTake(streams *cli.Streams) *cobra.Command {
	t := &queueTake{}
	cmd := &cobra.Command{
		Use:   "take NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Take items out of a queue and work on them",
		Long: `Take one item, or -n of them, or all that come with --follow, and wait for them.

lockstep runs the command once for each item, with the item on its standard input. If the command ends
with 0, the item is removed. Otherwise lockstep says so, and the item comes again, here or at another
consumer, after --retry-after, and becomes a dead letter after --max-attempts. LOCKSTEP_ATTEMPT tells
the command how often the item was taken, and LOCKSTEP_KIND its kind. A command that a signal to
lockstep or Ctrl-C has ended gives its item back, without an attempt, except in a strict queue. If the
servers cannot be reached for too long while the command runs, the command's process group gets
SIGTERM, and SIGKILL --kill-after later, before another consumer gets the item.

Without a command lockstep prints each item and removes it. The exit code is 1 if none came within -w,
or that of the last command that failed, 124 for one that --timeout has ended, or 75 if an item was
lost while the command worked on it. With --follow lockstep goes on after such a loss.`,
		Example: `  lockstep queue take mails -- ./send.sh
  lockstep queue take mails --follow --max-attempts 5 -- ./send.sh
  lockstep queue take mails -n 10 -w 5        print up to ten items, and end when none has come for 5 s`,
		Args: cli.CheckNameAnd(true),
		RunE: cli.WithExitCodes(t.takeItems),
	}
	t.ConnectionFlags.AddConnectionFlags(streams, cmd)
	t.Runner.AddFlags(streams, cmd)
	f := cmd.Flags()
	f.IntVarP(&t.number, "number", "n", 1, "how many items to take")
	f.BoolVarP(&t.follow, "follow", "f", false, "take items until a signal comes")
	f.VarP(&t.wait, "wait", "w", "wait for each item no longer than this; a bare number is seconds")
	f.Var(&t.retryAfter, "retry-after",
		"time until an item comes again after its command has failed (default by the queue's retry policy, else 1s "+
			"after the first attempt and twice as long after each further one, up to 1m)")
	f.Var(&t.timeout, "timeout", "end the command after this time; the attempt has failed then (default never)")
	f.IntVar(&t.maxAttempts, "max-attempts", 0, "make an item a dead letter after this many attempts (default never)")
	cmd.MarkFlagsMutuallyExclusive("number", "follow")
	return cmd
}

func (t *queueTake) takeItems(cmd *cobra.Command, args []string) error {
	t.EndsByTerminal = true
	own, command := cli.SplitAtDash(cmd, args)
	if t.number < 1 {
		return cli.UsageError("-n %d: it must be 1 or more", t.number)
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	t.byPolicy = !cmd.Flags().Changed("retry-after")
	opts := []queue.Option{queue.WithMaxInFlight(1)}
	if cmd.Flags().Changed("max-attempts") {
		opts = append(opts, queue.WithMaxAttempts(t.maxAttempts))
	}
	err := t.useQueue(cmd, own[0], opts, func(ctx context.Context, client *framework.Client) error {
		if err := t.PrepareCommand(ctx, client, t.queueCommand.path, command); err != nil {
			return err
		}
		return t.takeEach(ctx)
	})
	var coded *cli.ExitError
	if err == nil || t.follow && cli.EndedBySignal(cmd.Context()) && !errors.As(err, &coded) {
		return cli.ExitSilently(t.last)
	}
	return err
}

// takeEach takes one item after the other.
func (t *queueTake) takeEach(ctx context.Context) error {
	count := cli.NewProgress(t.Streams, "taken from "+t.queueCommand.path)
	defer count.PrintTotal(false)
	for n := 0; t.follow || n < t.number; n++ {
		d, err := t.takeOne(ctx)
		if err != nil {
			return err
		}
		err = t.handleItem(ctx, d)
		switch {
		case errors.As(err, new(cli.SignalError)):
			return err
		case err != nil && t.follow && !cli.EndedBySignal(ctx) &&
			(errors.Is(err, procguard.ErrHoldLost) || errors.Is(err, queue.ErrLost)):
			t.PrintWarning("%v; it comes again", err)
			t.last = cli.ExitLost
		case err != nil:
			return cli.WithCode(err) // the exit code tells that an item was lost, also after a signal
		default:
			count.AddCount(1)
		}
	}
	return nil
}

func (t *queueTake) takeOne(ctx context.Context) (*queue.Delivery[[]byte], error) {
	limited, cancel := cli.WithWaitLimit(ctx, t.wait)
	defer cancel()
	d, err := t.queue.Take(limited)
	return d, cli.TimedOutError(fmt.Sprintf("queue %s: no item came", t.queueCommand.path), t.wait, err)
}

// handleItem prints an item, or runs the command for it.
func (t *queueTake) handleItem(ctx context.Context, d *queue.Delivery[[]byte]) error {
	settled := context.WithoutCancel(ctx)
	if len(t.Command) == 0 {
		taken := itemJSON{Item: reportjson.NewItem(d.Value), ID: d.ID, Kind: d.Kind, Attempt: d.Attempt,
			Headers: d.Headers, Enqueued: reportjson.Time(d.Enqueued)}
		if err := cli.PrintResult(t.Out, t.JSON, taken, formatItem(t.Out, d.Value)); err != nil {
			return err
		}
		return d.Ack(settled)
	}
	code, err := t.runForItem(ctx, d)
	switch {
	case errors.Is(err, errItemTimeout) && d.Context().Err() == nil:
		t.last = cli.ExitTimeout
		return t.giveBack(settled, d, fmt.Errorf("the command took longer than %v (--timeout)", t.timeout.AsDuration()))
	case errors.Is(err, procguard.ErrHoldLost):
		return fmt.Errorf("queue %s: %w", t.queueCommand.path, err)
	case err != nil:
		nacked := d.Return(settled) // the command was not run
		if nacked != nil && !errors.As(err, new(cli.SignalError)) {
			return errors.Join(err, nacked)
		}
		return cmp.Or(nacked, err)
	case code == 0:
		return d.Ack(settled)
	}
	t.last = code
	if t.Signalled.Load() { // the item is not to blame
		return d.Return(settled)
	}
	return t.giveBack(settled, d, fmt.Errorf("exit code %d", code))
}

// giveBack gives an item back after its command has failed, and says when it comes again.
func (t *queueTake) giveBack(ctx context.Context, d *queue.Delivery[[]byte], reason error) error {
	after, again := t.retryAfter.AsDuration(), ""
	if _, known := t.queue.RetryPolicy(); t.byPolicy && known {
		after, again = 0, "it comes again by the queue's retry policy"
	} else if t.byPolicy {
		after = queue.DefaultPause(d.Attempt)
	}
	switch {
	case t.maxAttempts > 0 && d.Attempt >= t.maxAttempts:
		again = "it is a dead letter now"
	case again == "":
		again = fmt.Sprintf("it comes again after %v", after)
	}
	err := d.Nack(ctx, after, reason)
	if err == nil {
		t.PrintWarning("item %q: attempt %d has failed: %v; %s", cli.ShortenText(string(d.Value)), d.Attempt, reason,
			again)
	}
	return err
}

var errItemTimeout = errors.New("the time given with --timeout is over")

// runForItem runs the command with the item on its standard input.
func (t *queueTake) runForItem(ctx context.Context, d *queue.Delivery[[]byte]) (int, error) {
	in, err := newUnnamedFile(d.Value)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	t.Stdin = in
	held := d.Context()
	if t.timeout > 0 {
		limited, cancel := context.WithTimeoutCause(held, t.timeout.AsDuration(), errItemTimeout)
		defer cancel()
		held = limited
	}
	return t.RunCommand(ctx, held, int64(d.Attempt), "LOCKSTEP_ATTEMPT="+strconv.Itoa(d.Attempt),
		"LOCKSTEP_KIND="+d.Kind)
}

// newUnnamedFile returns a file with this content. It has no name by which another process could
// open it.
func newUnnamedFile(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "lockstep-item-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
