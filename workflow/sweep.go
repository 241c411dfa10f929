package workflow

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// sweeper removes runs that have finished longer ago than the retention time.
type sweeper struct {
	store     *runStore
	retention time.Duration
}

// sweepUntilEnd sweeps now and then: ten times in a retention time, but at least every ten minutes. The members do not meet, since their pauses are drawn at random.
func (w *sweeper) sweepUntilEnd(ctx context.Context) error {
	every := min(w.retention/10, 10*time.Minute)
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
			w.store.client.Logger().Warn("finished runs cannot be removed; this is tried again", "path", w.store.path, "error", err)
		}
	}
}

// sweep removes what is due now.
func (w *sweeper) sweep(ctx context.Context) error {
	return recipe.OnSession(ctx, w.store.client, func(s *framework.Session) error {
		now, err := w.store.clock.Ask(ctx, s, w.store.endedDir())
		if err != nil {
			return err
		}
		due := now.Add(-w.retention)
		minutes, _, err := s.Children(ctx, w.store.endedDir())
		if err != nil {
			return err
		}
		slices.Sort(minutes)
		for _, minute := range minutes {
			began, err := time.Parse(minuteForm, minute)
			if err != nil || began.After(due) {
				continue
			}
			if err := w.sweepMinute(ctx, s, znode.Join(w.store.endedDir(), minute), due); err != nil {
				return err
			}
		}
		return nil
	}, failure.IsTransient)
}

// sweepMinute removes the runs that have ended in a minute.
func (w *sweeper) sweepMinute(ctx context.Context, s *framework.Session, dir string, due time.Time) error {
	entries, _, err := s.Children(ctx, dir)
	if err != nil {
		return ignoreNoNode(err)
	}
	for _, entry := range entries {
		comma := strings.LastIndexByte(entry, ',')
		if comma < 0 {
			continue
		}
		r, err := w.store.read(ctx, s, entry[:comma])
		keep := false
		switch {
		case errors.Is(err, ErrNoRun):
		case err != nil:
			w.store.client.Logger().Warn("a run cannot be read", "path", r.node, "error", err)
			keep = true
		case !r.State.IsFinished(): // it was retried, and makes another entry when it ends
		case r.stat.Mtime.After(due):
			keep = true
		default:
			if err := w.remove(ctx, s, r); err != nil {
				return err
			}
		}
		if keep {
			continue
		}
		if err := s.DeleteIfPresent(ctx, znode.Join(dir, entry)); err != nil {
			return err
		}
	}
	return nil
}

// deletedAtOnce is how many nodes are deleted in one transaction.
const deletedAtOnce = 500

// remove deletes a run that has not changed since it was read.
func (w *sweeper) remove(ctx context.Context, s *framework.Session, r storedRun) error {
	names, _, err := s.Children(ctx, r.node)
	if err != nil {
		return ignoreNoNode(err)
	}
	for some := range slices.Chunk(names, deletedAtOnce) {
		ops := []framework.Op{r.unchanged()}
		for _, name := range some {
			ops = append(ops, framework.DeleteOp(znode.Join(r.node, name), framework.AnyVersion))
		}
		if err := w.store.commit(ctx, s, transition{ops: ops}); err != nil {
			return err
		}
	}
	return w.store.commit(ctx, s, transition{ops: []framework.Op{framework.DeleteOp(r.node, r.stat.Version)}})
}

func ignoreNoNode(err error) error {
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}
