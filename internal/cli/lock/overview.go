package lock

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
)

// printLockOverview prints one line for each lock.
func printLockOverview(w io.Writer, reports []locks.Report, now time.Time) error {
	t := cli.NewTable("LOCK", "KIND", "HELD BY", "ASKED", "WAITING")
	for _, r := range reports {
		t.AddRow(cli.BoldCell(cli.QuoteName(r.Path)), cli.PlainCell(KindOf(r)), HolderCell(r), AskedCell(r, now),
			WaitingCell(r))
	}
	return t.PrintTo(w)
}

// KindOf is a lock's kind; for a semaphore with the permits that are held, and all of them.
func KindOf(r locks.Report) string {
	if r.Permits == 0 {
		return string(r.Kind)
	}
	return fmt.Sprintf("%s %d/%d", r.Kind, permitsHeld(r), r.Permits)
}

func permitsHeld(r locks.Report) (n int) {
	for _, e := range r.Holders {
		n += e.Permits
	}
	return n
}

func HolderCell(r locks.Report) cli.Cell {
	if len(r.Holders) == 0 {
		return cli.DimCell("-")
	}
	text := ownerState(r.Holders[0])
	if mode := r.Holders[0].Mode; mode != "" {
		text += " (" + mode + ")"
	}
	if more := len(r.Holders) - 1; more > 0 {
		text += " +" + strconv.Itoa(more)
	}
	return cli.GreenCell(text)
}

func AskedCell(r locks.Report, now time.Time) cli.Cell {
	if len(r.Holders) == 0 {
		return cli.DimCell("-")
	}
	return cli.PlainCell(cli.FormatAge(now.Sub(r.Holders[0].Since)))
}

func WaitingCell(r locks.Report) cli.Cell {
	switch n := len(r.Waiters); {
	case r.Truncated:
		return cli.YellowCell(fmt.Sprintf("%d or more", n))
	case n > 0:
		return cli.YellowCell(strconv.Itoa(n))
	}
	return cli.DimCell("-")
}

// PrintDetail prints one lock: a line for each node.
func PrintDetail(w io.Writer, r locks.Report, now time.Time) error {
	t := cli.NewTable("", "OWNER", "HOST", "PID", "MODE", "PERMITS", "ASKED", "TOKEN", "SESSION", "NODE")
	for _, e := range r.Holders {
		t.AddRow(entryCells(cli.GreenCell("holds"), r, e, now)...)
	}
	for i, e := range r.Waiters {
		t.AddRow(entryCells(cli.YellowCell("waits "+strconv.Itoa(i+1)), r, e, now)...)
	}
	for _, e := range r.Others {
		t.AddRow(entryCells(cli.DimCell("other"), r, e, now)...)
	}
	t.Title = summarizeLock(r)
	return t.PrintTo(w)
}

// summarizeLock is a lock in one line.
func summarizeLock(r locks.Report) string {
	text := fmt.Sprintf("%s: %s, %d waiting", cli.QuoteName(r.Path), KindOf(r), len(r.Waiters))
	if r.Kind == locks.MixedLock {
		text += "; contenders of different kinds do not see each other, so that each kind has a holder"
	}
	if r.Truncated {
		text += fmt.Sprintf("; %d nodes, of which only the first in line are shown", r.Count)
	}
	return text
}

// entryCells are the cells of an entry.
func entryCells(role cli.Cell, r locks.Report, e locks.Entry, now time.Time) []cli.Cell {
	node := strings.TrimPrefix(e.Node, strings.TrimSuffix(r.Path, "/")+"/")
	return []cli.Cell{
		role, cli.PlainCell(ownerState(e)), cli.PlainCell(cli.ShortenText(e.Host)),
		cli.PlainCell(cli.FormatCount(e.PID)),
		cli.PlainCell(e.Mode), cli.PlainCell(cli.FormatCount(e.Permits)),
		cli.PlainCell(cli.FormatAge(now.Sub(e.Since))), cli.PlainCell(strconv.FormatInt(e.Token, 10)),
		cli.PlainCell(e.Session.String()), cli.DimCell(cli.QuoteName(node)),
	}
}

// ownerState is an entry's name, and that its owner was asked to let go.
func ownerState(e locks.Entry) string {
	if e.Revoked {
		return cli.OwnerName(e) + ", asked to let go"
	}
	return cli.OwnerName(e)
}
