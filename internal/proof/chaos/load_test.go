//go:build linux

package chaos

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// loadLevel says which actors of a client process run. The harness sets it by a line on the
// process's standard input: a word, and the number of the history's segment.
type loadLevel int

const (
	loadNone   loadLevel = iota // no operations
	loadDrain                   // consumers take what is left
	loadNormal                  // all workloads
	loadFaults                  // all workloads, and some hold as long as faults last
)

var loadLevels = map[string]loadLevel{"rest": loadNone, "drain": loadDrain, "work": loadNormal, "faults": loadFaults}

// loadControl starts and stops the actors of a process by its load level. It reports when the
// actors above the level have stopped.
type loadControl struct {
	mu        sync.Mutex
	level     loadLevel
	segment   int
	busy      map[loadLevel]int           // running actors, by the level that they need
	stopAbove map[loadLevel]chan struct{} // closed while the level is below
	changed   chan struct{}               // closed at the next change
	onRest    func()                      // called once no actor above the level runs
}

func newLoadControl() *loadControl {
	c := &loadControl{busy: map[loadLevel]int{}, stopAbove: map[loadLevel]chan struct{}{}, changed: make(chan struct{})}
	for _, p := range []loadLevel{loadDrain, loadNormal, loadFaults} {
		c.stopAbove[p] = make(chan struct{})
		close(c.stopAbove[p])
	}
	return c
}

// set changes the level. It calls onRest once the actors above the new level have stopped.
func (c *loadControl) set(p loadLevel, segment int, onRest func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for need, stop := range c.stopAbove {
		if was, is := c.level >= need, p >= need; was && !is {
			close(stop)
		} else if !was && is {
			c.stopAbove[need] = make(chan struct{})
		}
	}
	c.level, c.segment, c.onRest = p, segment, onRest
	close(c.changed)
	c.changed = make(chan struct{})
	c.reportRest()
}

// iteration is one pass of an actor's loop.
type iteration struct {
	segment    int
	stop       <-chan struct{} // closed when the actor should finish
	faultsOver <-chan struct{} // closed while the level is below loadFaults
}

// begin waits until the level allows an actor to run. It returns false if ctx ends first.
func (c *loadControl) begin(ctx context.Context, need loadLevel) (now iteration, ok bool) {
	for {
		if ctx.Err() != nil { // after ctx has ended every operation fails, so the loop would spin
			return iteration{}, false
		}
		c.mu.Lock()
		if c.level >= need {
			defer c.mu.Unlock()
			c.busy[need]++
			return iteration{c.segment, c.stopAbove[need], c.stopAbove[loadFaults]}, true
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// finish ends an iteration that begin returned.
func (c *loadControl) finish(need loadLevel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[need]--
	c.reportRest()
}

func (c *loadControl) reportRest() {
	for need, n := range c.busy {
		if need > c.level && n > 0 {
			return
		}
	}
	if c.onRest != nil {
		c.onRest()
		c.onRest = nil
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

func TestLoadControlReportsRest(t *testing.T) {
	control := newLoadControl()
	reported := []string{}
	report := func(what string) func() { return func() { reported = append(reported, what) } }
	control.set(loadNormal, 1, report("works"))
	worker, ok := control.begin(t.Context(), loadNormal)
	require.True(t, ok)
	require.Equal(t, 1, worker.segment)
	require.True(t, isClosed(worker.faultsOver))
	control.set(loadFaults, 1, report("storms"))
	consumer, ok := control.begin(t.Context(), loadDrain)
	require.True(t, ok)
	require.False(t, isClosed(consumer.faultsOver))
	control.set(loadNormal, 1, report("works"))
	<-consumer.faultsOver
	require.False(t, isClosed(worker.stop))
	reported = reported[2:]
	control.set(loadDrain, 1, report("drains"))
	<-worker.stop
	require.Equal(t, []string{"works"}, reported)
	control.finish(loadNormal)
	require.Equal(t, []string{"works", "drains"}, reported)
	control.set(loadNone, 1, report("rests"))
	<-consumer.stop
	control.finish(loadDrain)
	require.Equal(t, []string{"works", "drains", "rests"}, reported)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = control.begin(ctx, loadDrain)
	require.False(t, ok)
	control.set(loadFaults, 2, func() {})
	_, ok = control.begin(ctx, loadDrain)
	require.False(t, ok, "also at the highest level")
}
