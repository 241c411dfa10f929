package monitor

import (
	"context"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// queueLooker looks at queues.
type queueLooker struct {
	client   *framework.Client
	settings settings
	growth   map[string]queueGrowth // by the queue's path, as of the latest look that could read the queue
}

// queueGrowth is how many looks in a row have found more items in a queue than the look before.
type queueGrowth struct {
	items int       // at the latest look
	looks int       // how many in a row have found more
	from  int       // items before the first of these looks
	since time.Time // when that look was
}

// lookAtQueues looks at the queues at these paths.
func (w *queueLooker) lookAtQueues(ctx context.Context, l *lookResult, paths []string) error {
	reports, err := queue.InspectAll(ctx, w.client, paths...)
	if err != nil {
		return err
	}
	grown := map[string]queueGrowth{}
	for _, r := range reports {
		l.queues++
		if r.Err != nil {
			if err := l.addUnread(ctx, areaQueues, r.Path, r.Err); err != nil {
				return err
			}
			if before, known := w.growth[r.Path]; known {
				grown[r.Path] = before
			}
			continue
		}
		q := queueItems{path: r.Path, items: r.Items, delayed: r.Delayed, dead: r.Dead}
		if !r.Oldest.IsZero() {
			q.oldest = max(0, l.at.Sub(r.Oldest))
		}
		l.items = append(l.items, q)
		grown[r.Path] = w.judgeQueue(l, q)
	}
	w.growth = grown
	slices.SortFunc(l.items, func(a, b queueItems) int { return b.items + b.delayed - a.items - a.delayed })
	return nil
}

// judgeQueue finds dead letters, an old item and growth in a queue, and returns how it has grown.
func (w *queueLooker) judgeQueue(l *lookResult, q queueItems) queueGrowth {
	if q.dead > w.settings.deadLetters {
		letters := "letters"
		if q.dead == 1 {
			letters = "letter"
		}
		l.addFinding(Finding{Problem: ProblemDeadLetters, Path: q.path}, "%d dead %s", q.dead, letters)
	}
	if q.oldest > w.settings.oldItem {
		l.addFinding(Finding{Problem: ProblemOldItem, Path: q.path, Since: l.at.Add(-q.oldest)}, "the oldest item was put %v ago; %d items", q.oldest.Round(time.Second), q.items)
	}
	now, known := w.growth[q.path]
	growing := Finding{Problem: ProblemGrowing, Path: q.path}
	switch {
	case known && q.items <= now.items:
		return queueGrowth{items: q.items}
	case !known: // the first look at it
		l.undecided[growing.key()] = true
		return queueGrowth{items: q.items}
	case now.looks == 0:
		now.from, now.since = now.items, l.at
	}
	now.items = q.items
	now.looks++
	switch growing.Since = now.since; {
	case now.looks < w.settings.growthLooks:
		l.undecided[growing.key()] = true // a finding that a former leader has recorded stays open
	case q.items >= w.settings.growthItems:
		l.addFinding(growing, "it has grown at %d looks in a row, from %d to %d items", now.looks, now.from, now.items)
	}
	return now
}
