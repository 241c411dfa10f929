package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

func newQueueReturn(streams *cli.Streams) *cobra.Command {
	var yes bool
	cmd, _ := newQueueAct(streams, "return NAME ITEM [flags]", "Take an item away from the consumer that has it",
		`Take an item away from the consumer that has it, for a consumer that hangs. ITEM is the item's id or
its node, as lockstep queue inflight shows them. The item comes again, first in line; that the consumer
had it counts as an attempt. From then on the servers refuse the consumer's acknowledgement of the
item, and its guarded writes. The consumer is not asked: it may go on for a while beside the next one.

lockstep asks before it takes the item, unless -y is given. The exit code is 1 if no consumer has the
item. A consumer of a strict queue has all items by a lock, which lockstep release takes away.`,
		`  lockstep queue inflight mails               shows the items that consumers have
  lockstep queue return mails order-17
  lockstep queue return mails items/0000000000/i-0000000004 -y`,
		func(ctx context.Context, q *queueCommand, args []string) error {
			return q.takeBack(ctx, args[0], args[1], yes)
		})
	cmd.Args = cobra.ExactArgs(2)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// takeBack takes an item back, which is named by its id or its node.
func (q *queueCommand) takeBack(ctx context.Context, name, item string, yes bool) error {
	claims, err := q.queue.InFlight(ctx)
	if err != nil {
		return err
	}
	var found []queue.InFlightItem
	for _, c := range claims {
		if c.Node == item || c.Node == znode.Join(q.path, item) || item != "" && c.ID == item {
			found = append(found, c)
		}
	}
	see := "see which consumers have items: lockstep queue inflight " + cli.ShellWord(name)
	switch len(found) {
	case 0:
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("no consumer has an item %s of %s", cli.QuoteName(item),
			q.path), see)
	case 1:
	default:
		several := fmt.Errorf("%d items of %s with the id %s are with consumers", len(found), q.path,
			cli.QuoteName(item))
		return cli.ExitWith(cli.ExitMissing, several, "name one by its node; "+see)
	}
	claim := found[0]
	if !yes {
		if err := cli.Confirm(ctx, q.Streams, takeBackQuestion(claim, item)); err != nil {
			return err
		}
	}
	err = q.queue.TakeBack(ctx, claim)
	if errors.Is(err, framework.ErrInvalid) {
		lock := cli.ShellWord(q.path + "/lock")
		strict := fmt.Errorf("%s is strict: its consumer has all items by the lock %s/lock", q.path, q.path)
		return cli.ExitWith(cli.ExitMismatch, strict,
			fmt.Sprintf("take the lock away: lockstep locks %s shows its node, lockstep release %s --node "+
				"NODE deletes it", lock, lock))
	}
	if err != nil {
		return err
	}
	q.PrintNotice("%s: taken from %s; it comes again", cli.QuoteName(item), claimant(claim))
	return nil
}

func takeBackQuestion(c queue.InFlightItem, item string) string {
	return fmt.Sprintf("%s has item %s since %s, at attempt %d. It may go on for a while beside the next consumer. "+
		"Take the item back?", claimant(c), cli.QuoteName(item), cli.FormatTime(c.Since), c.Attempt)
}

// claimant names the consumer of a claim as well as it is known.
func claimant(c queue.InFlightItem) string {
	parts := []string{"session " + c.Session.String()}
	if c.PID != 0 {
		parts = append([]string{fmt.Sprintf("process %d", c.PID)}, parts...)
	}
	if c.Host != "" {
		parts = append([]string{c.Host}, parts...)
	}
	owner := c.Owner
	if owner == "" {
		owner = "the consumer"
	}
	return fmt.Sprintf("%s (%s)", cli.ShortenText(owner), strings.Join(parts, ", "))
}
