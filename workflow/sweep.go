package workflow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// sweeper removes runs that have finished longer ago than the retention time.
type sweeper struct {
	store           *runStore
	retention       time.Duration
	failedRetention time.Duration
}

// sweepUntilEnd sweeps until ctx ends: on average every tenth of the shorter retention time, or
// every ten minutes if that is shorter. Each pause is drawn at random, so that members seldom sweep
// at once; of those that do, the lock <path>/sweeper lets one sweep.
func (w *sweeper) sweepUntilEnd(ctx context.Context) error {
	every := min(w.retention/10, w.failedRetention/10, 10*time.Minute)
	for {
		pause := every/2 + rand.N(every)
		if recipe.Pause(ctx, pause) != nil {
			return nil
		}
		lease, err := locks.NewMutex(w.store.client, w.store.path+"/sweeper").TryLock(ctx)
		if err == nil {
			err = w.sweep(lease.Context())
			_ = lease.Release(ctx)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, locks.ErrNotAcquired) {
			w.store.client.Logger().Warn("finished runs cannot be removed; this is tried again", "path",
				w.store.path, "error", err)
		}
	}
}

// sweep removes the runs that are due now.
func (w *sweeper) sweep(ctx context.Context) error {
	return recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
		now, err := w.store.clock.ReadTime(ctx, s, w.store.endedDir())
		if err != nil {
			return err
		}
		if err := s.Sync(ctx, w.store.path); err != nil {
			return err
		}
		if err := w.sweepDir(ctx, s, endedRuns{w.store.endedDir(), false, now.Add(-w.retention)}); err != nil {
			return err
		}
		if err := w.sweepDir(ctx, s, endedRuns{w.store.failedDir(), true, now.Add(-w.failedRetention)}); err != nil {
			return err
		}
		return w.sweepKept(ctx, s, now)
	}, failure.IsTransient)
}

// endedRuns are the runs that have ended in one way.
type endedRuns struct {
	dir      string // has a directory for each minute
	isFailed bool
	due      time.Time // a run that ended before is removed
}

func (w *sweeper) sweepDir(ctx context.Context, s *framework.Session, ended endedRuns) error {
	minutes, _, err := s.Children(ctx, ended.dir)
	if err != nil {
		return w.leave(ended.dir, ignoreNoNode(err))
	}
	slices.Sort(minutes)
	for _, minute := range minutes {
		began, err := time.Parse(minuteForm, minute)
		if err != nil || began.After(ended.due) {
			continue
		}
		dir := znode.Join(ended.dir, minute)
		entries, _, err := s.Children(ctx, dir)
		if err = w.leave(dir, ignoreNoNode(err)); err != nil {
			return err
		}
		for some := range slices.Chunk(entries, readAtOnce) {
			if err := w.sweepEntries(ctx, s, ended, dir, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// removedAtOnce is how many runs are removed at the same time.
const removedAtOnce = 16

// sweepEntries removes the runs of some entries that are due. It deletes the entries of these runs
// and of runs that have another entry or will have one.
func (w *sweeper) sweepEntries(ctx context.Context, s *framework.Session, ended endedRuns, dir string,
	entries []string) error {
	runs, err := w.readEntries(ctx, entries)
	if err != nil {
		return err
	}
	parents, err := w.existingParents(ctx, runs)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(removedAtOnce)
	for i, entry := range entries {
		r, remove := runs[i], false
		switch {
		case r.node == "": // not a run's entry
			continue
		case r.err != nil:
			w.store.client.Logger().Warn("a run cannot be read", "path", r.node, "error", r.err)
			continue
		case !r.exists: // it was removed
		case !r.State.IsFinished() || (r.State == Failed) != ended.isFailed: // it was retried
		case r.stat.Mtime.After(ended.due), r.Parent != nil && parents[*r.Parent]:
			continue
		default:
			remove = true
		}
		group.Go(func() error {
			if remove {
				if err := w.store.remove(ctx, s, r.storedRun); err != nil {
					return w.leave(r.node, err)
				}
			}
			return w.leave(r.node, s.DeleteIfPresent(ctx, znode.Join(dir, entry)))
		})
	}
	return group.Wait()
}

// leave returns nil for an error that concerns this node alone, so that the sweep goes on with
// others. The entry stays, and the next sweep tries again.
func (w *sweeper) leave(path string, err error) error {
	if !errors.Is(err, framework.ErrNotEmpty) && !errors.Is(err, framework.ErrNoAuth) &&
		!errors.Is(err, framework.ErrTooLarge) {
		return err
	}
	w.store.client.Logger().Warn("a finished run cannot be removed; this is tried again", "path", path, "error", err)
	return nil
}

// endedRun is the run of an entry. It has no node if the entry is not one of a run.
type endedRun struct {
	storedRun
	exists bool
	err    error // why the run cannot be read
}

// readEntries reads the runs of entries.
func (w *sweeper) readEntries(ctx context.Context, entries []string) ([]endedRun, error) {
	runs := make([]endedRun, len(entries))
	paths, of := []string{}, []*endedRun{}
	for i, entry := range entries {
		if comma := strings.LastIndexByte(entry, ','); comma > 0 {
			runs[i].id, runs[i].node = entry[:comma], w.store.runNode(entry[:comma])
			paths, of = append(paths, runs[i].node), append(of, &runs[i])
		}
	}
	nodes, err := recipe.GetMany(ctx, w.store.client, paths)
	for k, n := range nodes {
		r := of[k]
		switch {
		case n.Err == nil:
			r.exists, r.stat = true, n.Stat
			r.runRecord, r.err = parseRun(r.node, n.Data)
			if errors.Is(r.err, errNoRun) {
				r.exists, r.err = false, nil
			}
		case !errors.Is(n.Err, framework.ErrNoNode):
			r.err = n.Err
		}
	}
	return runs, err
}

// existingParents returns the parents of the runs that exist. Such a parent may call Child again,
// and needs the child's outcome.
func (w *sweeper) existingParents(ctx context.Context, runs []endedRun) (map[parentRun]bool, error) {
	exists := map[parentRun]bool{}
	var parents []parentRun
	var paths []string
	for _, r := range runs {
		if r.Parent == nil || exists[*r.Parent] {
			continue
		}
		exists[*r.Parent] = true
		parents, paths = append(parents, *r.Parent), append(paths, w.store.runNode(r.Parent.ID))
	}
	nodes, err := recipe.GetMany(ctx, w.store.client, paths)
	for i, n := range nodes {
		parent, wrong := parseRun(paths[i], n.Data)
		isOther := n.Err == nil && wrong == nil && parent.UUID != parents[i].UUID
		// a parent that cannot be read exists
		exists[parents[i]] = !errors.Is(n.Err, framework.ErrNoNode) && !errors.Is(wrong, errNoRun) && !isOther
	}
	return exists, err
}

// removeFinished deletes a finished run whose parent is gone.
func (store *runStore) removeFinished(ctx context.Context, id string) error {
	removing := "" // the UUID of the run that an earlier attempt may have removed
	return recipe.OnSession(ctx, store.client, func(s *framework.Session) error {
		r, err := store.read(ctx, s, id)
		if removing != "" && (errors.Is(err, errNoRun) || err == nil && r.UUID != removing) {
			return nil
		}
		switch {
		case err != nil:
			return err
		case !r.State.IsFinished():
			return fmt.Errorf("%w: it is %s", ErrNotFinished, r.State)
		case r.Parent != nil:
			parent, err := store.read(ctx, s, r.Parent.ID)
			if err == nil && parent.UUID == r.Parent.UUID {
				return fmt.Errorf("%w: its parent %q exists, and may ask for its outcome: remove that first",
					ErrNotFinished, r.Parent.ID)
			}
			if err != nil && !errors.Is(err, errNoRun) {
				return err
			}
		}
		removing = r.UUID
		return store.remove(ctx, s, r)
	}, failure.IsTransient)
}

// deletedAtOnce is how many nodes below a finished run are deleted in one transaction.
const deletedAtOnce = MaxSteps

// remove deletes a finished run that has not changed since it was read, in one transaction. So a
// Retry comes before it and makes it fail, or finds no run: a run does not go on without its
// records. A run with more than deletedAtOnce nodes needs several transactions, the latest nodes
// first: a Retry between these goes on at the first step whose record is gone. A *framework.TxError
// says that the servers refuse one of the guards.
func (store *runStore) remove(ctx context.Context, s *framework.Session, r storedRun, guards ...framework.Op) error {
	children, err := store.children(ctx, s, r.node)
	if err != nil {
		return ignoreNoNode(err)
	}
	slices.Reverse(children)
	for {
		now := children[:min(len(children), deletedAtOnce)]
		children = children[len(now):]
		ops := append(slices.Clone(guards), r.unchanged())
		for _, c := range now {
			ops = append(ops, framework.DeleteOp(znode.Join(r.node, c.name), framework.AnyVersion))
		}
		if len(children) == 0 {
			last, err := store.removalOps(ctx, s, r)
			if err != nil {
				return err
			}
			ops = append(ops, last...)
		}
		err := store.commit(ctx, s, transition{ops: ops})
		var refused *framework.TxError
		switch {
		case errors.As(err, &refused) && refused.Index < len(guards):
			return refused
		case err != nil || len(children) == 0:
			return err
		}
	}
}

// removalOps are the operations that delete the node of a run, or put what stays of the run into
// its place.
func (store *runStore) removalOps(ctx context.Context, s *framework.Session, r storedRun) ([]framework.Op, error) {
	now, err := store.now(ctx, s)
	if err != nil {
		return nil, err
	}
	former := r.former(r.stat.Mtime)
	until := time.UnixMilli(former.Until)
	if r.Keep == 0 || !until.After(now) {
		return []framework.Op{framework.DeleteOp(r.node, r.stat.Version)}, nil
	}
	data, err := encodeRecord(former)
	entry := fmt.Sprintf("%s/%s/%s,%d", store.keptDir(), until.UTC().Format(minuteForm), r.id, r.stat.Version)
	return []framework.Op{framework.SetOp(r.node, data, r.stat.Version),
		framework.CreateOp(entry, nil, framework.Persistent)}, err
}

// sweepKept deletes what has stayed of removed runs once their ids are kept no longer.
func (w *sweeper) sweepKept(ctx context.Context, s *framework.Session, now time.Time) error {
	minutes, _, err := s.Children(ctx, w.store.keptDir())
	if err != nil {
		return w.leave(w.store.keptDir(), ignoreNoNode(err))
	}
	for _, minute := range minutes {
		began, err := time.Parse(minuteForm, minute)
		if err != nil || began.Add(time.Minute).After(now) {
			continue
		}
		dir := znode.Join(w.store.keptDir(), minute)
		entries, _, err := s.Children(ctx, dir)
		if err = w.leave(dir, ignoreNoNode(err)); err != nil {
			return err
		}
		group, within := errgroup.WithContext(ctx)
		group.SetLimit(removedAtOnce)
		for _, entry := range entries {
			group.Go(func() error { return w.leave(dir, w.forget(within, s, znode.Join(dir, entry), now)) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes what has stayed of the run of an entry, and the entry.
func (w *sweeper) forget(ctx context.Context, s *framework.Session, entry string, now time.Time) error {
	_, name := znode.Split(entry)
	id := name[:max(0, strings.LastIndexByte(name, ','))]
	if id == "" { // not a run's entry
		return nil
	}
	node := w.store.runNode(id)
	data, stat, err := s.Get(ctx, node)
	if err == nil {
		former, wrong := parseFormer(node, data)
		if wrong == nil && former.Until <= now.UnixMilli() {
			err = w.store.commit(ctx, s, transition{ops: []framework.Op{framework.DeleteOp(node, stat.Version)}})
		}
	}
	if err = ignoreNoNode(err); err != nil {
		return err
	}
	return s.DeleteIfPresent(ctx, entry)
}

func ignoreNoNode(err error) error {
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}
