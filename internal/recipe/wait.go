package recipe

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// WaitForWatch waits for the event of a watch, and stops the watch. If ctx ends first, it returns
// failure.Ended(ctx). If the session ends first, it returns the cause of that. Read the node again
// after any event; an event with an error says that the node is no longer watched.
func WaitForWatch(ctx context.Context, s *framework.Session, w *framework.Watch) (framework.Event, error) {
	defer w.Stop()
	_, event, err := WaitForFirst(ctx, s.Context(), Sources{Watch: w})
	return event, err
}

// Sources are what can end a wait. A nil source does not.
type Sources struct {
	Watch, SecondWatch *framework.Watch
	Signal             <-chan struct{}
	Timer              <-chan time.Time
}

// Source says which of the Sources has ended a wait.
type Source int

// The sources.
const (
	FromNone Source = iota // a context has ended, so the wait has an error
	FromWatch
	FromSecondWatch
	FromSignal
	FromTimer
)

// WaitForFirst waits until one of several sources ends the wait. within is the context of the
// session or of a hold, since the wait has no purpose after its end.
//
// The event is that of a watch, and may itself have an error. If ctx ends first, WaitForFirst
// returns failure.Ended(ctx). If within ends first, it returns the cause of that. It does not stop
// the watches.
func WaitForFirst(ctx, within context.Context, sources Sources) (Source, framework.Event, error) {
	var first, second <-chan framework.Event
	if sources.Watch != nil {
		first = sources.Watch.C()
	}
	if sources.SecondWatch != nil {
		second = sources.SecondWatch.C()
	}
	select {
	case e := <-first:
		return FromWatch, e, nil
	case e := <-second:
		return FromSecondWatch, e, nil
	case <-sources.Signal:
		return FromSignal, framework.Event{}, nil
	case <-sources.Timer:
		return FromTimer, framework.Event{}, nil
	case <-ctx.Done():
		return FromNone, framework.Event{}, failure.Ended(ctx)
	case <-within.Done():
		return FromNone, framework.Event{}, context.Cause(within)
	}
}
