package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// signal creates a signal's node. If the run waits for the signal, the run becomes active in the
// same transaction.
func (st *runStore) signal(ctx context.Context, id, name string, data json.RawMessage) error {
	record, err := encodeRecord(signalRecord{Data: data})
	if err != nil {
		return err
	}
	node := znode.Join(st.runNode(id), signalPrefix+name)
	return st.change(ctx, id, "", func(s *framework.Session, r storedRun) error {
		former, _, err := s.Get(ctx, node)
		switch {
		case err == nil: // maybe of an earlier attempt
			return checkSameSignal(node, name, former, data)
		case !errors.Is(err, framework.ErrNoNode):
			return err
		case r.State.IsFinished():
			return fmt.Errorf("%w: it is %s", ErrFinished, r.State)
		}
		create := framework.CreateOp(node, record, framework.Persistent)
		isAwaited := r.waitsFor(func(w runWait) bool { return w.Signal == name })
		if err := st.checkRoomForSignal(ctx, s, r, isAwaited); err != nil {
			return err
		}
		if !isAwaited {
			return st.commit(ctx, s, transition{ops: []framework.Op{r.unchanged(), create}})
		}
		next := r.activate()
		wake, err := r.write(next)
		if err != nil {
			return err
		}
		return st.commit(ctx, s, transition{ops: []framework.Op{wake, create}, kind: r.Workflow, item: next.item(id)})
	})
}

// checkRoomForSignal refuses a signal to a run that has too many. Steps and timers have limits of
// their own, so that the signals of others do not end a run.
func (st *runStore) checkRoomForSignal(ctx context.Context, s *framework.Session, r storedRun, isAwaited bool) error {
	if r.stat.NumChildren < maxSignals || isAwaited && r.stat.NumChildren < maxChildren {
		return nil
	}
	names, _, err := s.Children(ctx, r.node)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, signalPrefix) })
	if isAwaited || len(names) >= maxSignals {
		return fmt.Errorf("%w: the run has %d signals and %d nodes and may have no more", framework.ErrTooLarge,
			len(names), r.stat.NumChildren)
	}
	return nil
}

// checkSameSignal returns ErrSignalled if the run has this signal with other data, or its wait for
// the signal has timed out.
func checkSameSignal(node, name string, former []byte, data json.RawMessage) error {
	record, err := parseSignal(node, former)
	switch {
	case err != nil:
		return err
	case record.TimedOut:
		return fmt.Errorf("%w: the run's wait for %q has timed out", ErrSignalled, name)
	case !bytes.Equal(record.Data, data):
		return fmt.Errorf("%w: %q has data %s, not %s", ErrSignalled, name, shortenResult(record.Data),
			shortenResult(data))
	}
	return nil
}
