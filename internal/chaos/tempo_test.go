//go:build linux

package chaos

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// pace is what a process is told to do, by a line on its standard input: the word, and the number of the history's
// segment.
type pace int

const (
	rest  pace = iota // nothing
	drain             // consumers take what is left
	work              // everything
	storm             // and hold things for as long as faults last
)

var paces = map[string]pace{"rest": rest, "drain": drain, "work": work, "storm": storm}

// tempo lets actors work at a pace, and knows when all that should rest do.
type tempo struct {
	mu      sync.Mutex
	pace    pace
	segment int
	busy    map[pace]int           // actors at work, by the pace that they need
	enough  map[pace]chan struct{} // closed while the pace is below
	changed chan struct{}          // closed at the next change
	report  func()                 // to be called once nobody is busy above the pace
}

func newTempo() *tempo {
	t := &tempo{busy: map[pace]int{}, enough: map[pace]chan struct{}{}, changed: make(chan struct{})}
	for _, p := range []pace{drain, work, storm} {
		t.enough[p] = make(chan struct{})
		close(t.enough[p])
	}
	return t
}

// set changes the pace. report is called once all that should rest do.
func (t *tempo) set(p pace, segment int, report func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for need, c := range t.enough {
		if was, is := t.pace >= need, p >= need; was && !is {
			close(c)
		} else if !was && is {
			t.enough[need] = make(chan struct{})
		}
	}
	t.pace, t.segment, t.report = p, segment, report
	close(t.changed)
	t.changed = make(chan struct{})
	t.reportRest()
}

// turn is one go of an actor.
type turn struct {
	segment int
	enough  <-chan struct{} // closed when the actor should come to an end
	calm    <-chan struct{} // closed while there is no storm
}

// begin waits until the pace is what an actor needs; ok is false when ctx ends first.
func (t *tempo) begin(ctx context.Context, need pace) (now turn, ok bool) {
	for {
		if ctx.Err() != nil { // at whatever pace: it would go on for ever, and get nothing
			return turn{}, false
		}
		t.mu.Lock()
		if t.pace >= need {
			defer t.mu.Unlock()
			t.busy[need]++
			return turn{t.segment, t.enough[need], t.enough[storm]}, true
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// finish is called by an actor that has begun.
func (t *tempo) finish(need pace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy[need]--
	t.reportRest()
}

func (t *tempo) reportRest() {
	for need, n := range t.busy {
		if need > t.pace && n > 0 {
			return
		}
	}
	if t.report != nil {
		t.report()
		t.report = nil
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestATempoKnowsWhenAllRest(t *testing.T) {
	tempo := newTempo()
	said := []string{}
	say := func(what string) func() { return func() { said = append(said, what) } }
	tempo.set(work, 1, say("works"))
	worker, ok := tempo.begin(t.Context(), work)
	require.True(t, ok)
	require.Equal(t, 1, worker.segment)
	require.True(t, isClosed(worker.calm))
	tempo.set(storm, 1, say("storms"))
	consumer, ok := tempo.begin(t.Context(), drain)
	require.True(t, ok)
	require.False(t, isClosed(consumer.calm))
	tempo.set(work, 1, say("works"))
	<-consumer.calm
	require.False(t, isClosed(worker.enough))
	said = said[2:]
	tempo.set(drain, 1, say("drains"))
	<-worker.enough
	require.Equal(t, []string{"works"}, said)
	tempo.finish(work)
	require.Equal(t, []string{"works", "drains"}, said)
	tempo.set(rest, 1, say("rests"))
	<-consumer.enough
	tempo.finish(drain)
	require.Equal(t, []string{"works", "drains", "rests"}, said)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = tempo.begin(ctx, drain)
	require.False(t, ok)
	tempo.set(storm, 2, func() {})
	_, ok = tempo.begin(ctx, drain)
	require.False(t, ok, "not even in a storm")
}
