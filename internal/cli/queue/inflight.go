package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func newQueueInFlight(streams *cli.Streams) *cobra.Command {
	cmd, _ := newQueueAct(streams, "inflight NAME [flags]", "List the items that consumers have, and since when",
		`List the items that consumers have: since when, how often the item was taken, the consumer's session,
which the servers' logs name, too, its name, host and process, and the item's node. lockstep queue return
takes an item away from a consumer. In a strict queue the time is that at which the consumer's turn began,
and items that it has given back and not taken again are listed, too.`,
		"  lockstep queue inflight mails --json",
		func(ctx context.Context, q *queueCommand, _ []string) error { return printClaims(ctx, streams, q) })
	return cmd
}

// printClaims lists the items that consumers have.
func printClaims(ctx context.Context, streams *cli.Streams, q *queueCommand) error {
	claims, err := q.queue.InFlight(ctx)
	if err != nil {
		return err
	}
	t, now := cli.NewTable("ITEM", "ID", "TAKEN", "PUT", "ATTEMPT", "SESSION", "OWNER", "HOST", "PID", "NODE"),
		time.Now()
	for _, c := range claims {
		if q.JSON {
			if err := cli.PrintResult(streams.Out, true, c); err != nil {
				return err
			}
			continue
		}
		session, since, put := cli.DimCell("none"), cli.DimCell("-"), cli.DimCell("-")
		if c.Session != 0 {
			session, since = cli.PlainCell(c.Session.String()),
				cli.PlainCell(cli.FormatAge(now.Sub(c.Since)))
		}
		if !c.Enqueued.IsZero() {
			put = cli.PlainCell(cli.FormatAge(now.Sub(c.Enqueued)))
		}
		t.AddRow(cli.BoldCell(cli.ShortenText(string(c.Data))), cli.PlainCell(cli.ShortenText(c.ID)), since, put,
			cli.PlainCell(strconv.Itoa(c.Attempt)), session, cli.GreenCell(cli.ShortenText(c.Owner)),
			cli.PlainCell(cli.ShortenText(c.Host)), cli.PlainCell(cli.FormatCount(c.PID)),
			cli.DimCell(cli.QuoteName(strings.TrimPrefix(c.Node, q.path+"/"))))
	}
	if len(claims) == 0 && !q.JSON {
		streams.PrintNotice("no consumer has an item of %s", q.path)
	}
	return t.PrintTo(streams.Out)
}
