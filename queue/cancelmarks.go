package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// cancelMarks are the marks of Cancel, as one consumer session has read them. The consumer session
// reads the marks for its first item with an id, and again when the watch fires: the event comes
// before the answer to a claim that was made after the mark.
type cancelMarks struct {
	s   *framework.Session
	dir string

	reading chan struct{} // has a token while a goroutine reads; guards the rest
	watch   *framework.Watch
	names   []string
	ended   bool
}

func newCancelMarks(s *framework.Session, dir string) *cancelMarks {
	return &cancelMarks{s: s, dir: dir, reading: make(chan struct{}, 1)}
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
