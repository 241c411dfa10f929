package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// printLockOverview prints one line for each lock.
func printLockOverview(w io.Writer, reports []*locks.Report, now time.Time) error {
	t := newTable("LOCK", "KIND", "HELD BY", "ASKED", "WAITING")
	for _, r := range reports {
		t.addRow(boldCell(quoteName(r.Path)), plainCell(kindOf(r)), holderCell(r), askedCell(r, now), waitingCell(r))
	}
	return t.printTo(w)
}

// kindOf is a lock's kind; for a semaphore with the permits that are held, and all of them.
func kindOf(r *locks.Report) string {
	if r.Permits == 0 {
		return string(r.Kind)
	}
	return fmt.Sprintf("%s %d/%d", r.Kind, permitsHeld(r), r.Permits)
}

func permitsHeld(r *locks.Report) (n int) {
	for _, e := range r.Holders {
		n += e.Permits
	}
	return n
}

func holderCell(r *locks.Report) cell {
	if len(r.Holders) == 0 {
		return dimCell("-")
	}
	text := ownerState(r.Holders[0])
	if mode := r.Holders[0].Mode; mode != "" {
		text += " (" + mode + ")"
	}
	if more := len(r.Holders) - 1; more > 0 {
		text += " +" + strconv.Itoa(more)
	}
	return greenCell(text)
}

func askedCell(r *locks.Report, now time.Time) cell {
	if len(r.Holders) == 0 {
		return dimCell("-")
	}
	return plainCell(formatAge(now.Sub(r.Holders[0].Since)))
}

func waitingCell(r *locks.Report) cell {
	switch n := len(r.Waiters); {
	case r.Truncated:
		return yellowCell(fmt.Sprintf("%d or more", n))
	case n > 0:
		return yellowCell(strconv.Itoa(n))
	}
	return dimCell("-")
}

// printLockDetail prints one lock: a line for each node.
func printLockDetail(w io.Writer, r *locks.Report, now time.Time) error {
	t := newTable("", "OWNER", "HOST", "PID", "MODE", "PERMITS", "ASKED", "TOKEN", "SESSION", "NODE")
	for _, e := range r.Holders {
		t.addRow(entryCells(greenCell("holds"), r, e, now)...)
	}
	for i, e := range r.Waiters {
		t.addRow(entryCells(yellowCell("waits "+strconv.Itoa(i+1)), r, e, now)...)
	}
	for _, e := range r.Others {
		t.addRow(entryCells(dimCell("other"), r, e, now)...)
	}
	t.title = summarizeLock(r)
	return t.printTo(w)
}

// summarizeLock is a lock in one line.
func summarizeLock(r *locks.Report) string {
	text := fmt.Sprintf("%s: %s, %d waiting", quoteName(r.Path), kindOf(r), len(r.Waiters))
	if r.Kind == locks.MixedLock {
		text += "; contenders of different kinds do not see each other, so that each kind has a holder"
	}
	if r.Truncated {
		text += fmt.Sprintf("; %d nodes, of which the first %d are shown", r.Count, locks.MaxEntries)
	}
	return text
}

// entryCells are the cells of an entry.
func entryCells(role cell, r *locks.Report, e locks.Entry, now time.Time) []cell {
	node := strings.TrimPrefix(e.Node, strings.TrimSuffix(r.Path, "/")+"/")
	return []cell{
		role, plainCell(ownerState(e)), plainCell(shortenText(e.Host)), plainCell(formatCount(e.PID)),
		plainCell(e.Mode), plainCell(formatCount(e.Permits)),
		plainCell(formatAge(now.Sub(e.Since))), plainCell(strconv.FormatInt(e.Token, 10)),
		plainCell(e.Session.String()), dimCell(quoteName(node)),
	}
}

// formatCount formats a number, or "" for 0.
func formatCount[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// ownerName is the name in an entry's data, or else its session, which can be found in the servers'
// logs.
func ownerName(e locks.Entry) string {
	switch {
	case e.Owner != "":
		return shortenText(e.Owner)
	case e.Data != "" && !e.Revoked: // Curator's mark names nobody
		return shortenText(e.Data)
	}
	if e.Session == 0 {
		_, name := znode.Split(e.Node)
		return shortenText(name)
	}
	return "session " + e.Session.String()
}

// ownerState is an entry's name, and that its owner was asked to let go.
func ownerState(e locks.Entry) string {
	if e.Revoked {
		return ownerName(e) + ", asked to let go"
	}
	return ownerName(e)
}

// longestText is how many letters of a text are shown at most.
const longestText = 60

// shortenText returns the beginning of a text that any program may have written, quoted if need be.
func shortenText(text string) string {
	if text == "" {
		return ""
	}
	return quoteName(cutText(text))
}

// cutText cuts a text that is longer than longestText.
func cutText(text string) string {
	if runes := []rune(text); len(runes) > longestText {
		return string(runes[:longestText-1]) + "…"
	}
	return text
}
