package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
)

// claimJSON is an item that a consumer has, as JSON.
type claimJSON struct {
	Node    string          `json:"node"`
	ID      string          `json:"id,omitempty"`
	Session locks.SessionID `json:"session"`
	Owner   string          `json:"owner,omitempty"`
	Exact   []byte          `json:"owner_base64,omitempty"`
	Host    string          `json:"host,omitempty"`
	PID     int             `json:"pid,omitempty"`
	Since   *time.Time      `json:"since,omitempty"`
	Put     *time.Time      `json:"put,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Item    string          `json:"item"`
	Binary  []byte          `json:"item_base64,omitempty"` // if the item is not UTF-8
}

func claimView(c queue.Claim) claimJSON {
	return claimJSON{
		Node: c.Node, ID: c.ID, Session: locks.SessionID(c.Session), Owner: c.Owner, Exact: bytesIfInvalid(c.Owner),
		Host: c.Host, PID: c.PID,
		Since: knownTime(c.Since.UTC()), Put: knownTime(c.Put.UTC()), Attempt: c.Attempt,
		Item: string(c.Data), Binary: bytesIfInvalid(string(c.Data)),
	}
}

func newQueueInFlight(streams *Streams) *cobra.Command {
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
func printClaims(ctx context.Context, streams *Streams, q *queueCommand) error {
	claims, err := q.queue.InFlight(ctx)
	if err != nil {
		return err
	}
	t, now := newTable("ITEM", "ID", "TAKEN", "PUT", "ATTEMPT", "SESSION", "OWNER", "HOST", "PID", "NODE"), time.Now()
	for _, c := range claims {
		if q.json {
			if err := printResult(streams.Out, true, claimView(c)); err != nil {
				return err
			}
			continue
		}
		session, since, put := dimCell("none"), dimCell("-"), dimCell("-")
		if c.Session != 0 {
			session, since = plainCell(locks.SessionID(c.Session).String()), plainCell(formatAge(now.Sub(c.Since)))
		}
		if !c.Put.IsZero() {
			put = plainCell(formatAge(now.Sub(c.Put)))
		}
		t.addRow(boldCell(shortenText(string(c.Data))), plainCell(shortenText(c.ID)), since, put,
			plainCell(strconv.Itoa(c.Attempt)), session, greenCell(shortenText(c.Owner)),
			plainCell(shortenText(c.Host)), plainCell(formatCount(c.PID)),
			dimCell(quoteName(strings.TrimPrefix(c.Node, q.path+"/"))))
	}
	if len(claims) == 0 && !q.json {
		streams.printNotice("no consumer has an item of %s", q.path)
	}
	return t.printTo(streams.Out)
}
