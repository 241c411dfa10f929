package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// signal creates a signal's node. If the run waits for the signal, the run becomes active in the
// same transaction.
func (store *runStore) signal(ctx context.Context, id, name string, given signalRecord) error {
	record, err := encodeRecord(given)
	if err != nil {
		return err
	}
	return store.change(ctx, id, "", func(s *framework.Session, r storedRun) error {
		next, isGiven, err := store.nextSignal(ctx, s, r, name, given)
		switch {
		case err != nil || isGiven: // maybe by an earlier attempt
			return err
		case r.State.IsFinished():
			return fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		}
		create := framework.CreateOp(znode.Join(r.node, next.node(signalPrefix)), record, framework.Persistent)
		isAwaited := r.waitsFor(func(w runWait) bool { return w.signal() == next })
		if err := store.checkRoomForSignal(ctx, s, r, isAwaited); err != nil {
			return err
		}
		if !isAwaited {
			return store.commit(ctx, s, transition{ops: []framework.Op{r.unchanged(), create}})
		}
		awake := r.activate()
		wake, err := r.write(awake)
		if err != nil {
			return err
		}
		return store.commit(ctx, s,
			transition{ops: []framework.Op{wake, create}, kind: r.Workflow, item: awake.item(id)})
	})
}

// checkRoomForSignal refuses a signal to a run that has too many. Steps and timers have limits of
// their own, so that the signals of others do not end a run.
func (store *runStore) checkRoomForSignal(ctx context.Context, s *framework.Session, r storedRun,
	isAwaited bool) error {
	if r.stat.NumChildren < maxSignals || isAwaited && r.stat.NumChildren < maxChildren {
		return nil
	}
	names, _, err := s.Children(ctx, r.node)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		kind, _ := splitChild(name)
		return kind != signalPrefix
	})
	if isAwaited || len(names) >= maxSignals {
		return fmt.Errorf("%w: the run has %d signals and %d nodes and may have no more", framework.ErrTooLarge,
			len(names), r.stat.NumChildren)
	}
	return nil
}

// nextSignal finds the number that a signal gets among those of its name: the lowest one that is
// free. If the run has the signal already, isGiven is true; with other data the error is
// ErrSignalled.
func (store *runStore) nextSignal(ctx context.Context, s *framework.Session, r storedRun, name string,
	given signalRecord) (next numbered, isGiven bool, err error) {
	next = numbered{name, 1}
	first := znode.Join(r.node, next.node(signalPrefix))
	data, _, err := s.Get(ctx, first)
	if errors.Is(err, framework.ErrNoNode) && given.ID == "" {
		return next, false, nil
	}
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return next, false, err
	}
	if err == nil {
		record, err := parseSignal(first, data)
		if err != nil {
			return next, false, err
		}
		if given.ID == "" && record.TimedOut {
			return next, false, fmt.Errorf("%w: the run's wait for %q has timed out", ErrSignalled, name)
		}
		if record.ID == given.ID && !record.TimedOut {
			return next, true, checkSameSignal(name, record, given)
		}
	}
	names, _, err := s.Children(ctx, r.node)
	if err != nil {
		return next, false, err
	}
	var paths []string
	taken := map[int]bool{}
	for _, node := range names {
		if kind, of := splitNumbered(node); kind == signalPrefix && of.name == name {
			paths, taken[of.number] = append(paths, znode.Join(r.node, node)), true
		}
	}
	for taken[next.number] {
		next.number++
	}
	found, err := s.GetAll(ctx, paths...)
	if err != nil {
		return next, false, err
	}
	for i, n := range found {
		if n.Err != nil { // Retry has deleted it
			return next, false, recipe.ErrAgain
		}
		record, err := parseSignal(paths[i], n.Data)
		if err != nil {
			return next, false, err
		}
		if record.ID == given.ID && !record.TimedOut {
			return next, true, checkSameSignal(name, record, given)
		}
	}
	return next, false, nil
}

// checkSameSignal returns ErrSignalled if the run has a signal with other data.
func checkSameSignal(name string, has, given signalRecord) error {
	if bytes.Equal(has.Data, given.Data) {
		return nil
	}
	of := ""
	if given.ID != "" {
		of = fmt.Sprintf(" with id %q", given.ID)
	}
	return fmt.Errorf("%w: %q%s has data %s, not %s", ErrSignalled, name, of, shortenResult(has.Data),
		shortenResult(given.Data))
}
