package recipe

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// WaitForWatch waits for the event of a watch and stops the watch. It returns an error when ctx ends first, which is failure.Ended(ctx), or the session,
// which is the cause of its end. Read the node again after any event: one with an error says that the node is no longer watched.
func WaitForWatch(ctx context.Context, s *framework.Session, w *framework.Watch) (framework.Event, error) {
	defer w.Stop()
	_, event, err := WaitForFirst(ctx, s.Context(), Sources{Watch: w})
	return event, err
}

// Sources are what can end a wait. Those that are nil do not.
type Sources struct {
	Watch, Second *framework.Watch
	Signal        <-chan struct{}
	Timer         <-chan time.Time
}

// Source is one of Sources.
type Source int

// The sources.
const (
	Nothing Source = iota // the wait ended with an error of a context
	Watch
	Second
	Signal
	Timer
)

// WaitForFirst waits for the first of several sources, as long as ctx and within last. within is the context of the session, or of a
// hold, without which the wait has no purpose. The event is that of a watch, and may have an error itself. The error is failure.Ended(ctx) or the cause of within's
// end. It does not stop the watches.
func WaitForFirst(ctx, within context.Context, from Sources) (Source, framework.Event, error) {
	var first, second <-chan framework.Event
	if from.Watch != nil {
		first = from.Watch.C()
	}
	if from.Second != nil {
		second = from.Second.C()
	}
	select {
	case e := <-first:
		return Watch, e, nil
	case e := <-second:
		return Second, e, nil
	case <-from.Signal:
		return Signal, framework.Event{}, nil
	case <-from.Timer:
		return Timer, framework.Event{}, nil
	case <-ctx.Done():
		return Nothing, framework.Event{}, failure.Ended(ctx)
	case <-within.Done():
		return Nothing, framework.Event{}, context.Cause(within)
	}
}
