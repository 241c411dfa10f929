package monitor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// queuesAtOnce is how many queues are looked at side by side.
const queuesAtOnce = 16

// queueWatch looks at queues.
type queueWatch struct {
	client   *framework.Client
	root     string
	settings settings
	growth   map[string]growth
}

// growth is how a queue has grown.
type growth struct {
	items int
	looks int // in a row
	from  int // items before the first of them
	since time.Time
}

// look looks at all queues and returns their paths.
func (w *queueWatch) look(ctx context.Context, l *look) (map[string]bool, error) {
	var paths []string
	for path, err := range queue.Find(ctx, w.client, w.root) {
		if err == nil {
			paths = append(paths, path)
		} else if err := l.addUnread(ctx, areaQueues, w.root, err); err != nil {
			return nil, err
		}
	}
	found, errs := make([]queueItems, len(paths)), make([]error, len(paths))
	inParallel(len(paths), queuesAtOnce, func(i int) { found[i], errs[i] = w.read(ctx, l.at, paths[i]) })
	grown, all := map[string]growth{}, map[string]bool{}
	for i, path := range paths {
		l.queues++
		all[path] = true
		if errs[i] != nil {
			if err := l.addUnread(ctx, areaQueues, path, errs[i]); err != nil {
				return nil, err
			}
			if before, known := w.growth[path]; known {
				grown[path] = before
			}
			continue
		}
		l.items = append(l.items, found[i])
		grown[path] = w.judge(l, found[i])
	}
	w.growth = grown
	slices.SortFunc(l.items, func(a, b queueItems) int { return b.items + b.delayed - a.items - a.delayed })
	return all, nil
}

// read reads a queue's figures.
func (w *queueWatch) read(ctx context.Context, at time.Time, path string) (q queueItems, err error) {
	of := queue.New(w.client, path, queue.Bytes())
	defer func() { err = errors.Join(err, of.Close(ctx)) }()
	counts, err := of.Counts(ctx)
	if err != nil {
		return q, err
	}
	q = queueItems{path: path, items: counts.Items, delayed: counts.Delayed, dead: counts.Dead}
	oldest, err := of.Oldest(ctx)
	if err == nil && !oldest.IsZero() {
		q.oldest = max(0, at.Sub(oldest))
	}
	return q, err
}

// judge finds what is wrong with a queue, and returns how it has grown.
func (w *queueWatch) judge(l *look, q queueItems) growth {
	if q.dead > w.settings.deadLetters {
		l.add(Finding{Problem: ProblemDeadLetters, Path: q.path}, "%d dead letters", q.dead)
	}
	if q.oldest > w.settings.oldItem {
		l.add(Finding{Problem: ProblemOldItem, Path: q.path, Since: l.at.Add(-q.oldest)}, "the oldest item was put %v ago; %d items", q.oldest.Round(time.Second), q.items)
	}
	now, known := w.growth[q.path]
	growing := Finding{Problem: ProblemGrowing, Path: q.path}
	switch {
	case known && q.items <= now.items:
		return growth{items: q.items}
	case !known: // the first look at it
		l.unknown[growing.key()] = true
		return growth{items: q.items}
	case now.looks == 0:
		now.from, now.since = now.items, l.at
	}
	now.items = q.items
	now.looks++
	switch growing.Since = now.since; {
	case now.looks < w.settings.growthLooks:
		l.unknown[growing.key()] = true // a finding of the leader before goes on
	case q.items >= w.settings.growthItems:
		l.add(growing, "it has grown at %d looks in a row, from %d to %d items", now.looks, now.from, now.items)
	}
	return now
}
