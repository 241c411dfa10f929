//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// event is one line that a client process writes.
type event struct {
	At   int64       `json:"t"`            // ns, see now
	Op   int64       `json:"op,omitempty"` // number of the operation in its process
	Step eventStep   `json:"step"`
	Kind requestKind `json:"kind,omitempty"` // of the request
	Path string      `json:"path,omitempty"`

	Token   int64  `json:"token,omitempty"`   // of a grant
	Number  int64  `json:"number,omitempty"`  // of a term, or of an item in its producer's stream
	Permits int    `json:"permits,omitempty"` // requested
	Item    string `json:"item,omitempty"`    // the stream of an item
	Attempt int    `json:"attempt,omitempty"` // of a delivery
	Delay   int64  `json:"delay,omitempty"`   // ns, of a put

	Source string `json:"source,omitempty"` // of a value that is shown: the servers or a file
	// ids that were given, as pairs of first and last; keys of a tree; transactions of changes
	Numbers []int64          `json:"numbers,omitempty"`
	Listed  map[string]int64 `json:"listed,omitempty"` // the number of each instance or member, by id

	Order    string    `json:"order,omitempty"`     // that was carried out, or the name of a call
	LastHeld int64     `json:"last_held,omitempty"` // of an end: when the hold was last seen alive
	End      endReason `json:"end,omitempty"`       // of an end
	// of a failure, of an unknown outcome before the call's context has ended, or the stack of a
	// goroutine
	Error string `json:"error,omitempty"`
}

// eventStep is what happened to an operation.
type eventStep string

const (
	stepRequested eventStep = "requested" // about to send the request
	stepGranted   eventStep = "granted"   // granted: a hold, a delivery, or a put or a cancel that is done
	stepAbandoned eventStep = "abandoned" // gave up, and was granted nothing
	stepUnknown   eventStep = "unknown"   // the outcome of the put or the cancel is unknown
	stepFailed    eventStep = "failed"    // failed with an error other than the end of its context
	stepStillHeld eventStep = "held"      // the hold's context is alive
	stepAcking    eventStep = "acking"    // about to acknowledge
	stepEnded     eventStep = "ended"     // the hold or delivery is over
	stepResting   eventStep = "resting"   // the process has carried out Order
	stepConnected eventStep = "connected"
	stepGoroutine eventStep = "goroutine" // of a process that makes no progress
	stepShown     eventStep = "shown"     // a follower of Path got a value, a list or a view, or Error has ended it
	// stepUndocumented is written when the call Order of Path has returned Error, and its
	// documentation does not allow that.
	stepUndocumented eventStep = "undocumented"
)

// requestKind is what is requested.
type requestKind string

const (
	kindLock     requestKind = "lock"
	kindReadLock requestKind = "read"
	kindPermits  requestKind = "permits"
	kindTerm     requestKind = "term"
	kindPut      requestKind = "put"
	kindDelivery requestKind = "delivery"
	kindCancel   requestKind = "cancel"

	kindWrite    requestKind = "write"    // of a value
	kindIDs      requestKind = "ids"      // some ids
	kindAdd      requestKind = "add"      // 1 to a counter
	kindJoin     requestKind = "join"     // an instance is registered, a member joins
	kindUpdate   requestKind = "update"   // an instance or a member gets a new number
	kindLeave    requestKind = "leave"    // an instance is unregistered, a member leaves
	kindPick     requestKind = "pick"     // an instance of a pool
	kindDrain    requestKind = "drain"    // of a member
	kindUncordon requestKind = "uncordon" // of a member
	kindDrained  requestKind = "drained"  // shown: a member's drain function has ended

	kindStart     requestKind = "start"      // a run
	kindSignal    requestKind = "signal"     // to a run
	kindCancelRun requestKind = "cancel_run" // a run is cancelled
	kindExecution requestKind = "execution"  // of a run: held while its function is called
	kindStep      requestKind = "step"       // shown: Order of the run Item has returned Source
	kindFinish    requestKind = "finish"     // shown: the run Item has finished as Source
)

// isCall reports whether a request is over when it is answered: it does not begin a hold.
func (k requestKind) isCall() bool {
	return k == kindPut || k == kindCancel || k.isServiceCall()
}

// isServiceCall reports whether a request concerns a value, ids, an instance or a member. The
// history keeps the outcome of each.
func (k requestKind) isServiceCall() bool {
	switch k {
	case kindWrite, kindIDs, kindAdd, kindJoin, kindUpdate, kindLeave, kindPick, kindDrain, kindUncordon, kindStart,
		kindSignal, kindCancelRun:
		return true
	}
	return false
}

// endReason is how a hold or a delivery ended.
type endReason string

const (
	endReleased    endReason = "released"
	endLost        endReason = "lost"     // its context ended
	endAcked       endReason = "acked"    // the item is gone
	endUncertain   endReason = "in doubt" // the acknowledgement failed: the item may be gone
	endNacked      endReason = "nacked"   // returned to the queue
	endProcessDied endReason = "died"     // its process was killed
)

// eventWriter writes each event at once, so that a killed process loses none.
type eventWriter struct {
	mu     sync.Mutex
	to     io.Writer
	lastOp atomic.Int64 // number of the last operation
}

func (w *eventWriter) write(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // all fields can be encoded
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.to.Write(append(line, '\n')); err != nil {
		panic(err) // a missing event would invalidate the history
	}
}

// readEvent decodes a line of eventWriter.
func readEvent(line []byte) (e event, err error) {
	if err = json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("line %q is no event: %w", line, err)
	}
	if e.Step == "" || e.At <= 0 {
		return e, fmt.Errorf("line %q has no step or no time", line)
	}
	return e, nil
}

func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"t":17,"op":3,"step":"requested","kind":"lock","path":"/mutex-0"}`))
	f.Add([]byte(`{"t":0,"step":"requested"}`))
	f.Add([]byte(`nonsense`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := readEvent(line)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		require.NoError(t, err)
		same, err := readEvent(again)
		require.NoError(t, err)
		require.Equal(t, e, same)
	})
}
