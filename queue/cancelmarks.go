package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// cancelMarks are the marks of Cancel, as one consumer session has read them. The consumer session
// reads the marks for its first item with an id, and again when the watch fires: the event comes
// before the answer to a claim that was made after the mark.
type cancelMarks struct {
	client *framework.Client
	s      *framework.Session
	dir    string

	reading chan struct{} // has a token while a goroutine reads; guards the rest
	watch   *framework.Watch
	names   []string
	ended   bool
}

func newCancelMarks(client *framework.Client, s *framework.Session, dir string) *cancelMarks {
	return &cancelMarks{client: client, s: s, dir: dir, reading: make(chan struct{}, 1)}
}

// cancelOutcome is what removeIfMarked has found out about an item.
type cancelOutcome int

const (
	itemStays   cancelOutcome = iota // it is not cancelled, as far as is known
	itemRemoved                      // with its claim and its marks
	itemGone                         // it had gone; its claim may still be there
)

// removeIfMarked removes a claimed item that Cancel has marked, by the given operations, and the
// marks. If Cancel has withdrawn the mark meanwhile, the servers refuse the removal, and the item
// stays. The error wraps ErrLost if the item had gone; with an item that stays, it says why the
// marks are not known.
func (m *cancelMarks) removeIfMarked(ctx context.Context, h queuelayout.Header, item string,
	removal []framework.Op) (cancelOutcome, error) {
	back := recipe.NewBackoff(m.client)
	for sent := false; ; { // whether a removal was sent, and its outcome is unknown
		marks, err := m.marksOf(ctx, h)
		switch {
		case err != nil:
		case len(marks) > 0:
			ops := removal
			for _, mark := range marks {
				ops = append(ops, framework.DeleteOp(mark, framework.AnyVersion))
			}
			_, err = m.s.Multi(ctx, ops...)
			if sent = true; err == nil {
				return itemRemoved, nil
			}
		case !sent:
			return itemStays, nil
		default: // Cancel has withdrawn the mark, or the removal was done
			_, err = m.s.Exists(ctx, item)
			if err == nil {
				return itemStays, nil
			}
			if errors.Is(err, framework.ErrNoNode) {
				return itemGone, fmt.Errorf("%w: %w", ErrLost, err)
			}
		}
		var refused *framework.TxError
		switch {
		case errors.As(err, &refused) && refused.Index >= len(removal) && errors.Is(err, framework.ErrNoNode):
			sent = false
			m.stopWatch(false)
		case errors.As(err, &refused) && recipe.IsConflict(err):
			// the item was purged, or an earlier try has removed it and its reply was lost
			return itemGone, fmt.Errorf("%w: %w", ErrLost, err)
		case !failure.IsTransient(err) || back.Pause(ctx) != nil:
			return itemStays, err
		}
	}
}

// marksOf returns the marks of an item that was claimed before the call.
func (m *cancelMarks) marksOf(ctx context.Context, h queuelayout.Header) (marks []string, err error) {
	select {
	case m.reading <- struct{}{}:
		defer func() { <-m.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := m.readIfChanged(ctx); err != nil {
		return nil, err
	}
	for _, name := range m.names {
		if strings.HasPrefix(name, h.CancelPrefix()) {
			marks = append(marks, znode.Join(m.dir, name))
		}
	}
	return marks, nil
}

// readIfChanged reads the marks if they may have changed; m.reading is held.
func (m *cancelMarks) readIfChanged(ctx context.Context) error {
	if m.watch != nil {
		select {
		case <-m.watch.C():
			m.watch = nil
		default:
			return nil
		}
	}
	_, watch, err := m.s.WatchExists(ctx, m.dir)
	var names []string
	switch {
	case errors.Is(err, framework.ErrNoNode):
		err = nil
	case err == nil:
		names, _, err = m.s.Children(ctx, m.dir)
		if errors.Is(err, framework.ErrNoNode) {
			err = nil
		}
	}
	if (err != nil || m.ended) && watch != nil {
		watch.Stop()
	}
	if err == nil {
		m.watch, m.names = watch, names
	}
	return err
}

// stopWatch makes the next marksOf read the marks again. ended says that the consumer session has
// ended: then later reads leave no watch.
func (m *cancelMarks) stopWatch(ended bool) {
	m.reading <- struct{}{}
	defer func() { <-m.reading }()
	if m.watch != nil {
		m.watch.Stop()
		m.watch = nil
	}
	m.ended = m.ended || ended
}
