package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/queue"
)

// queueScanner judges queues.
type queueScanner struct {
	settings settings
	growth   map[string]queueGrowth // by the queue's path, as of the latest scan that could read the queue
}

// queueGrowth is how many scans in a row have found more items in a queue than the scan before.
type queueGrowth struct {
	items int       // at the latest scan
	scans int       // how many in a row have found more
	from  int       // items before the first of these scans
	since time.Time // when that scan was
}

// judgeQueues finds the problems of queues.
func (w *queueScanner) judgeQueues(l *scanResult) {
	grown := map[string]queueGrowth{}
	for _, path := range l.survey.QueuePaths { // one that could not be read stays as it was
		if before, known := w.growth[path]; known {
			grown[path] = before
		}
	}
	for _, r := range l.survey.Queues {
		q := queueItems{path: r.Path, items: r.Items, delayed: r.Delayed, dead: r.Dead}
		q.attempts = r.Retried.Attempts
		if !r.Oldest.IsZero() {
			q.oldest = max(0, l.at.Sub(r.Oldest))
		}
		if r.Held.Node != "" {
			q.held = max(0, l.at.Sub(r.Held.Since))
		}
		w.judgeItems(l, q, r)
		l.items = append(l.items, q)
		grown[r.Path] = w.judgeQueue(l, q)
	}
	w.growth = grown
	slices.SortFunc(l.items, func(a, b queueItems) int { return b.items + b.delayed - a.items - a.delayed })
}

// judgeItems finds an item that fails again and again, and one that a consumer has had for long.
func (w *queueScanner) judgeItems(l *scanResult, q queueItems, r queue.Report) {
	if q.attempts >= w.settings.failingItem {
		reason := ""
		if r.Retried.LastError != "" {
			reason = fmt.Sprintf("; its last error: %q", r.Retried.LastError)
		}
		atLeast := ""
		if r.Retried.More {
			atLeast = "at least "
		}
		l.addFinding(Finding{Problem: ProblemFailingItem, Path: q.path, Node: r.Retried.Node},
			"%s has come back after %d attempts%s; such items in the queue: %s%d",
			describeItem(r.Path, r.Retried.ID, r.Retried.Node), q.attempts, reason, atLeast, r.Retried.Items)
	}
	if q.held > w.settings.heldItem {
		l.addFinding(Finding{Problem: ProblemHeldItem, Path: q.path, Node: r.Held.Node, Since: r.Held.Since},
			"%s has had %s for %v, at attempt %d",
			describeConsumer(r.Held), describeItem(r.Path, r.Held.ID, r.Held.Node), q.held.Round(time.Second),
			r.Held.Attempt)
	}
}

// describeItem names an item by its producer's id, or else by its node within the queue.
func describeItem(path, id, node string) string {
	if id != "" {
		return fmt.Sprintf("item %q", id)
	}
	return "item " + strings.TrimPrefix(node, path+"/")
}

// describeConsumer names a consumer by its own name, if it has stored one, and by its session.
func describeConsumer(c queue.InFlightItem) string {
	session := c.Session
	if c.Owner == "" {
		return fmt.Sprintf("the consumer with session %s", session)
	}
	return fmt.Sprintf("%s (session %s)", c.Owner, session)
}

// judgeQueue finds dead letters, an old item and growth in a queue, and returns how it has grown.
func (w *queueScanner) judgeQueue(l *scanResult, q queueItems) queueGrowth {
	if q.dead > w.settings.deadLetters {
		letters := "letters"
		if q.dead == 1 {
			letters = "letter"
		}
		l.addFinding(Finding{Problem: ProblemDeadLetters, Path: q.path}, "%d dead %s", q.dead, letters)
	}
	if q.oldest > w.settings.oldItem {
		l.addFinding(Finding{Problem: ProblemOldItem, Path: q.path, Since: l.at.Add(-q.oldest)},
			"the oldest item was put %v ago; %d items", q.oldest.Round(time.Second), q.items)
	}
	now, known := w.growth[q.path]
	growing := Finding{Problem: ProblemGrowing, Path: q.path}
	switch {
	case known && q.items <= now.items:
		return queueGrowth{items: q.items}
	case !known: // the first scan it
		l.undecided[growing.key()] = true
		return queueGrowth{items: q.items}
	case now.scans == 0:
		now.from, now.since = now.items, l.at
	}
	now.items = q.items
	now.scans++
	switch growing.Since = now.since; {
	case now.scans < w.settings.growthScans:
		l.undecided[growing.key()] = true // a finding that a former leader has recorded stays open
	case q.items >= w.settings.growthItems:
		l.addFinding(growing, "it has grown at %d scans in a row, from %d to %d items", now.scans, now.from, now.items)
	}
	return now
}
