package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// Report is what Inspect and List have found of one queue.
type Report struct {
	Path string `json:"path"`
	// Missing says that there is no such queue, or not yet.
	Missing bool `json:"missing,omitempty"`
	Counts
	// Oldest is when the oldest item was put, as Queue.Oldest returns it.
	Oldest time.Time `json:"oldest,omitzero"`
	// Paused reports whether the queue is paused, as Queue.Paused does.
	Paused bool `json:"paused"`
	// Retried is what was seen of the items that have come back.
	Retried Retried `json:"retried,omitzero"`
	// Held is the item that a consumer has had for the longest time, without its Data; the zero
	// value if there is none, or if the queue is strict: the servers do not know when a strict
	// queue's items were claimed. Of each priority the first segment that has items was looked at.
	Held InFlightItem `json:"-"`
}

// MarshalJSON leaves Held out.
func (r Report) MarshalJSON() ([]byte, error) {
	type fields Report
	r.Oldest = reportjson.Time(r.Oldest)
	return json.Marshal(fields(r))
}

func init() {
	queuelayout.InspectMany = func(ctx context.Context, client *framework.Client, paths []string,
		each func(report any, err error)) error {
		return inspectMany(ctx, client, paths, func(r Report, err error) { each(r, err) })
	}
}

// Inspect reports on the queue at a path, and changes nothing. A queue that does not exist is
// reported as Missing. Counts are exact while there are no puts and takes. The error is that of
// ctx, or wraps framework.ErrForeign, framework.ErrNewer, framework.ErrNoAuth or
// framework.ErrInvalid.
func Inspect(ctx context.Context, client *framework.Client, path string) (report Report, err error) {
	var unread error
	err = inspectMany(ctx, client, []string{path}, func(r Report, err error) { report, unread = r, err })
	return report, cmp.Or(err, unread)
}

// inspectedAtOnce is how many queues List reads together.
const inspectedAtOnce = 500

// List yields a report of each queue at and below root, as Inspect makes it, in the order of Find.
// It reads up to 500 queues together: about 20 requests for 1,000 queues with few segments each,
// and some more if items have come back or consumers have some.
//
// It yields an error for a queue or a directory that cannot be read, and goes on: the error wraps
// framework.ErrForeign, framework.ErrNewer or framework.ErrNoAuth, and the report has no more than
// the queue's path. Any other error is the last.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		for paths, err := range recipe.Chunks(Find(ctx, client, root), inspectedAtOnce) {
			if err != nil {
				if !yield(Report{}, err) {
					return
				}
				continue
			}
			reports, errs := make([]Report, 0, len(paths)), make([]error, 0, len(paths))
			if err := inspectMany(ctx, client, paths, func(r Report, err error) {
				reports, errs = append(reports, r), append(errs, err)
			}); err != nil {
				yield(Report{}, err)
				return
			}
			for i, report := range reports {
				if !yield(report, errs[i]) {
					return
				}
			}
		}
	}
}

// inspectMany reports on the queues at some paths, in their order, and reads them together. each
// gets a report and the error that concerns this queue. The returned error concerns all of them:
// then nothing is known.
func inspectMany(ctx context.Context, client *framework.Client, paths []string, each func(Report, error)) error {
	if client == nil {
		return errors.New("inspect: the client is nil")
	}
	r := &queuesReader{client: client, queues: make([]*queueReading, len(paths))}
	for i, path := range paths {
		if err := framework.ValidatePath(path); err != nil {
			return failure.Wrap("inspect", path, err)
		}
		r.queues[i] = &queueReading{nodes: queuelayout.New(path)}
	}
	err := recipe.OnSession(ctx, client, func(s *framework.Session) error { return s.Sync(ctx, "/") },
		failure.IsTransient)
	if err == nil {
		err = r.readRecords(ctx)
	}
	if err == nil {
		err = r.read(ctx, (*queuesReader).countItems, (*queuesReader).readOldest,
			(*queuesReader).listTicketsAndReturned, (*queuesReader).readHeldAndReturned)
	}
	if err != nil {
		return fmt.Errorf("inspect %d queues: %w", len(paths), err)
	}
	for i, q := range r.queues {
		report := Report{Path: paths[i], Missing: q.absent}
		if !q.absent && q.err == nil {
			report.Counts, report.Oldest, report.Paused, report.Retried, report.Held = q.counts,
				q.oldest, q.paused, q.retried, q.held
		}
		if q.absent {
			q.err = nil
		}
		each(report, failure.Wrap("inspect", paths[i], q.err))
	}
	return nil
}

// queuesReader reads several queues step by step, each step for all of them together.
type queuesReader struct {
	client *framework.Client
	queues []*queueReading
}

// queueReading is what was read of one queue.
type queueReading struct {
	nodes  *queuelayout.Layout
	absent bool
	err    error

	chains  []*chainReading // the lanes and the base chain
	dead    *chainReading   // the dead letters
	hours   []string        // directories of delayed items
	seconds []filledDir
	counts  Counts
	oldest  time.Time
	paused  bool
	strict  bool
	heads   []*chainHead // of those chains that have items
	held    InFlightItem
	search  *retriedSearch
	retried Retried
}

// chainReading is what was read of one chain of segments.
type chainReading struct {
	chain queuelayout.Chain
	dirs  []filledDir // its segments, in order
}

// keepError keeps the first error of a queue. What is missing is no error: a queue's parts come and
// go.
func (q *queueReading) keepError(err error) {
	if q.err == nil && err != nil && !errors.Is(err, framework.ErrNoNode) {
		q.err = err
	}
}

// readOwn reads the queue of a store by steps, also one whose removal was interrupted; see read. It
// returns errAbsent if there is no queue.
func (store *store) readOwn(ctx context.Context, steps ...readStep) (queueReading, error) {
	q := queueReading{nodes: store.nodes}
	if _, err := store.sessionForReads(ctx); err != nil {
		return q, err
	}
	err := (&queuesReader{client: store.client, queues: []*queueReading{&q}}).read(ctx, steps...)
	return q, cmp.Or(err, q.err)
}

// readStep is one of the steps of a queuesReader.
type readStep func(*queuesReader, context.Context) error

// read lists the segments of the queues' chains, and then takes further steps.
func (r *queuesReader) read(ctx context.Context, further ...readStep) error {
	for _, step := range append([]readStep{(*queuesReader).listLanes, (*queuesReader).listSegments}, further...) {
		if err := step(r, ctx); err != nil {
			return err
		}
	}
	return nil
}

// readRecords finds out which of the queues exist, and which are paused.
func (r *queuesReader) readRecords(ctx context.Context) error {
	var vacant []*queueReading // nodes without a record that have children
	err := r.get(ctx, func(q *queueReading) []string {
		return []string{q.nodes.Path, q.nodes.ItemsDir, q.nodes.PausedNode}
	}, func(q *queueReading, read []framework.Node) {
		record, items, paused := read[0], read[1], read[2]
		q.paused = !errors.Is(paused.Err, framework.ErrNoNode)
		if record.Err == nil && len(record.Data) == 0 {
			if q.absent = true; record.Stat.NumChildren > 0 {
				vacant = append(vacant, q)
			}
			return
		}
		stored, err := storedRecord(q.nodes, record, items)
		q.strict = stored.IsStrict()
		q.absent = errors.Is(err, framework.ErrNoNode) || errors.Is(err, errDropped)
		q.err = err
	})
	if err != nil {
		return err
	}
	paths := make([]string, len(vacant))
	for i, q := range vacant {
		paths[i] = q.nodes.Path
	}
	lists, err := recipe.ListMany(ctx, r.client, paths)
	if err != nil {
		return err
	}
	for i, q := range vacant {
		if err := checkVacantChildren(lists[i].Names); !errors.Is(err, errVacant) {
			q.absent, q.err = false, err
		}
		q.keepError(lists[i].Err)
		q.absent = q.absent && q.err == nil
	}
	return nil
}

// ListLanes lists the lanes of each queue, and the hours for which it has delayed items.
func (r *queuesReader) listLanes(ctx context.Context) error {
	return r.list(ctx, func(q *queueReading) []string {
		return []string{q.nodes.LanesDir, q.nodes.DelayedDir}
	}, func(q *queueReading, n int, names []string) {
		if n == 0 {
			for _, lane := range q.nodes.LanesIn(names) {
				q.chains = append(q.chains, &chainReading{chain: lane})
			}
			return
		}
		for _, hour := range queuelayout.NumbersIn(names) {
			q.hours = append(q.hours, q.nodes.HourDir(hour))
		}
	})
}

// ListSegments lists the segments of all chains, and the seconds for which there are delayed items.
func (r *queuesReader) listSegments(ctx context.Context) error {
	return r.list(ctx, func(q *queueReading) (dirs []string) {
		q.chains, q.dead = append(q.chains, &chainReading{chain: q.nodes.Base}), &chainReading{chain: q.nodes.Dead}
		for _, c := range append(q.chains, q.dead) {
			dirs = append(dirs, c.chain.Dir)
		}
		return append(dirs, q.hours...)
	}, func(q *queueReading, n int, names []string) {
		chains := append(q.chains, q.dead)
		if n < len(chains) {
			for _, segment := range chains[n].chain.SegmentsIn(names) {
				chains[n].dirs = append(chains[n].dirs, filledDir{path: segment.Dir()})
			}
			return
		}
		for _, second := range queuelayout.NumbersIn(names) {
			q.seconds = append(q.seconds, filledDir{path: q.nodes.SecondDir(second)})
		}
	})
}

// countItems counts the items in the segments. It keeps those segments that have items.
func (r *queuesReader) countItems(ctx context.Context) error {
	return r.get(ctx, func(q *queueReading) (paths []string) {
		for _, c := range append(q.chains, q.dead, &chainReading{dirs: q.seconds}) {
			for _, dir := range c.dirs {
				paths = append(paths, dir.path)
			}
		}
		return paths
	}, func(q *queueReading, read []framework.Node) {
		count := func(dirs []filledDir) (n int, filled []filledDir) {
			for i, dir := range dirs {
				q.keepError(read[i].Err)
				if dir.items = int(read[i].Stat.NumChildren); dir.items > 0 {
					filled = append(filled, dir)
				}
				n += dir.items
			}
			read = read[len(dirs):]
			return n, filled
		}
		for _, c := range q.chains {
			n, filled := count(c.dirs)
			q.counts.Items += n
			c.dirs = filled
		}
		q.counts.Dead, _ = count(q.dead.dirs)
		q.counts.Delayed, q.seconds = count(q.seconds)
	})
}

// firstItem is the search for the first item of a chain.
type firstItem struct {
	of    *queueReading
	dirs  []filledDir // segments to list
	items []string    // that were listed, in order
	read  int         // how many of them to read at once
}

// readOldest reads the first item of each chain. Consumers may have taken it meanwhile: then it
// reads the next ones, twice as many each time.
func (r *queuesReader) readOldest(ctx context.Context) error {
	var open []*firstItem
	for _, q := range r.queues {
		for _, c := range q.chains {
			open = append(open, &firstItem{of: q, dirs: c.dirs, read: 1})
		}
	}
	for len(open) > 0 {
		if err := r.listNextItems(ctx, open); err != nil {
			return err
		}
		var items []string
		for _, f := range open {
			items = append(items, f.items[:min(f.read, len(f.items))]...)
		}
		read, err := recipe.GetMany(ctx, r.client, items)
		if err != nil {
			return err
		}
		var next []*firstItem
		for _, f := range open {
			n := min(f.read, len(f.items))
			if !f.of.learnFirst(f.items, read[:n]) && len(f.items)+len(f.dirs) > n {
				f.items, f.read = f.items[n:], 2*f.read
				next = append(next, f)
			}
			read = read[n:]
		}
		open = next
	}
	return nil
}

// listNextItems lists the next segment of each search that has no items left.
func (r *queuesReader) listNextItems(ctx context.Context, open []*firstItem) error {
	var dirs []string
	var listed []*firstItem
	for _, f := range open {
		if len(f.items) == 0 && len(f.dirs) > 0 {
			dirs, listed = append(dirs, f.dirs[0].path), append(listed, f)
			f.dirs = f.dirs[1:]
		}
	}
	lists, err := recipe.ListMany(ctx, r.client, dirs)
	if err != nil {
		return err
	}
	for i, f := range listed {
		f.of.keepError(lists[i].Err)
		for _, number := range queuelayout.ItemNumbersIn(lists[i].Names) {
			f.items = append(f.items, queuelayout.ItemPath(dirs[i], number))
		}
	}
	return nil
}

// learnFirst records the first of some items, and reports whether there was one. read are the
// first of them.
func (q *queueReading) learnFirst(items []string, read []framework.Node) bool {
	for i, item := range read {
		if errors.Is(item.Err, framework.ErrNoNode) {
			continue
		}
		if item.Err != nil {
			q.keepError(item.Err)
			return true
		}
		if put := putTime(item); q.oldest.IsZero() || put.Before(q.oldest) {
			q.oldest = put
		}
		head := newChainHead(q.nodes, items[i:], item)
		q.heads = append(q.heads, head)
		if e, err := queuelayout.DecodeItem(item.Data, item.Stat); err == nil && head.segment.Chain != q.nodes.Redo {
			// readRetried reads the returned items
			q.retried.learn(items[i], e, item.Stat)
		}
		return true
	}
	return false
}

// listTicketsAndReturned lists the tickets of the first items, and the items that may have come
// back: returned ones and delayed ones.
func (r *queuesReader) listTicketsAndReturned(ctx context.Context) error {
	return r.list(ctx, func(q *queueReading) (dirs []string) {
		if q.strict {
			q.heads = nil
		}
		for _, h := range q.heads {
			dirs = append(dirs, h.segment.TicketDir())
		}
		var returned []filledDir
		for _, c := range q.chains {
			if c.chain == q.nodes.Redo {
				returned = c.dirs
			}
		}
		slices.SortFunc(q.seconds, func(a, b filledDir) int { return strings.Compare(a.path, b.path) })
		q.search = newRetriedSearch(returned, q.seconds)
		q.retried.More = q.search.items > 0
		return append(dirs, q.search.dirs...)
	}, func(q *queueReading, n int, names []string) {
		if n < len(q.heads) {
			q.heads[n].findClaimed(names)
		} else {
			q.search.addNames(n-len(q.heads), names)
		}
	})
}

// readHeldAndReturned reads the tickets, and some of the items that may have come back, in a few
// rounds.
func (r *queuesReader) readHeldAndReturned(ctx context.Context) error {
	for reads := true; reads; {
		reads = false
		items := map[*queueReading][]string{}
		err := r.get(ctx, func(q *queueReading) (paths []string) {
			for _, h := range q.heads {
				paths = append(paths, h.unread()...)
			}
			items[q] = q.search.next()
			return append(paths, items[q]...)
		}, func(q *queueReading, read []framework.Node) {
			reads = true
			for _, h := range q.heads {
				n := len(h.unread())
				q.learnHeld(h, read[:n])
				read = read[n:]
			}
			q.heads = nil
			q.keepError(q.search.learn(&q.retried, items[q], read))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// learnHeld records a claim, unless another one is older.
func (q *queueReading) learnHeld(h *chainHead, read []framework.Node) {
	claim, held, err := h.describeClaim(read)
	q.keepError(err)
	if held && (q.held.Node == "" || claim.Since.Before(q.held.Since)) {
		q.held = claim
	}
}

// putTime is when an item was put. Of an item that cannot be read it is when its node was created.
func putTime(item framework.Node) time.Time {
	if e, err := queuelayout.DecodeItem(item.Data, item.Stat); err == nil {
		return e.Header.EnqueuedAt().UTC()
	}
	return item.Stat.Ctime.UTC()
}

// get reads the nodes that paths names for each queue that is there and readable, and hands each
// queue its own.
func (r *queuesReader) get(ctx context.Context, paths func(*queueReading) []string,
	take func(*queueReading, []framework.Node)) error {
	var all []string
	counts := make([]int, len(r.queues))
	for i, q := range r.queues {
		if !q.absent && q.err == nil {
			own := paths(q)
			all, counts[i] = append(all, own...), len(own)
		}
	}
	read, err := recipe.GetMany(ctx, r.client, all)
	if err != nil {
		return err
	}
	for i, q := range r.queues {
		if counts[i] > 0 {
			take(q, read[:counts[i]])
			read = read[counts[i]:]
		}
	}
	return nil
}

// list lists the directories that dirs names for each queue that is there and readable. take gets
// the names in each, and its number among dirs.
func (r *queuesReader) list(ctx context.Context, dirs func(*queueReading) []string,
	take func(q *queueReading, n int, names []string)) error {
	var all []string
	counts := make([]int, len(r.queues))
	for i, q := range r.queues {
		if !q.absent && q.err == nil {
			own := dirs(q)
			all, counts[i] = append(all, own...), len(own)
		}
	}
	lists, err := recipe.ListMany(ctx, r.client, all)
	if err != nil {
		return err
	}
	for i, q := range r.queues {
		for n, list := range lists[:counts[i]] {
			q.keepError(list.Err)
			take(q, n, list.Names)
		}
		lists = lists[counts[i]:]
	}
	return nil
}
