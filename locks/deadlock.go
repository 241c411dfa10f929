package locks

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// DeadlockMode is what a lock request does about a deadlock that it is part of; see
// WithDeadlockMode.
type DeadlockMode int

// The modes.
const (
	// DeadlockFail lets the youngest request of a deadlock fail with a *DeadlockError. It is the
	// default.
	DeadlockFail DeadlockMode = iota
	// DeadlockReport lets the request wait on. A deadlock is only logged and counted. If other
	// requests of it are in DeadlockFail, the youngest of those fails. But if only requests in
	// DeadlockReport count a lock of another process as held (WithHeldLocks), or one of another
	// client, no request fails: that list may be wrong.
	DeadlockReport
	// DeadlockOff leaves the request out: it writes no record, and Lockstep does not find deadlocks
	// that contain it.
	DeadlockOff
)

func (m DeadlockMode) String() string {
	switch m {
	case DeadlockFail:
		return "fail"
	case DeadlockReport:
		return "report"
	case DeadlockOff:
		return "off"
	}
	return fmt.Sprintf("mode %d", int(m))
}

// DeadlockError is returned to the youngest request of a deadlock: holders of locks that wait for
// each other. Release the leases under which you requested, and the other requests go on. It wraps
// ErrDeadlock.
//
// Guarantee: there was a moment at which all requests of the cycle waited, and each lock that a
// request waited for was held by the next. Deadlocks through other systems, such as a database, are
// not found.
type DeadlockError struct {
	// Cycle are the requests, each of which waits for a lock that the next one holds, and the last
	// one for a lock of the first, which is this request. A semaphore's waiter waits for several
	// holders: then Cycle lists all requests of the deadlock.
	Cycle []DeadlockedRequest
}

// DeadlockedRequest is one request of a deadlock, as it describes itself.
type DeadlockedRequest struct {
	// Path is the lock that it waits for.
	Path string `json:"path"`
	// Holds are the locks of the deadlock that its caller holds.
	Holds []string `json:"holds"`
	// Owner, Host and PID are of the requesting process.
	Owner string `json:"owner"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	// Since is when it began to wait, by its own clock.
	Since time.Time `json:"since"`
	// Node is its node in the line; "" for a request without a node of its own.
	Node string `json:"node,omitempty"`
	// Number rises from request to request: the request with the highest one is the youngest. A
	// request gets it after a second, or later if the servers refuse its record at first.
	Number int64 `json:"number"`
}

func (e *DeadlockError) Error() string {
	lines := make([]string, len(e.Cycle))
	for i, a := range e.Cycle {
		lines[i] = a.String()
	}
	return fmt.Sprintf("%v: %s", waitline.ErrDeadlock, strings.Join(lines, "; "))
}

// Unwrap returns ErrDeadlock.
func (e *DeadlockError) Unwrap() error { return waitline.ErrDeadlock }

// String names the asking process, the locks that it holds, and the lock that it waits for.
func (a DeadlockedRequest) String() string {
	who := a.Owner
	if a.Host != "" || a.PID != 0 {
		who = fmt.Sprintf("%s (%s, process %d)", a.Owner, a.Host, a.PID)
	}
	return fmt.Sprintf("%s holds %s and waits for %s since %s", who, strings.Join(a.Holds, ", "), a.Path,
		a.Since.UTC().Format(time.RFC3339))
}

// deadlockedRequests returns the requests of a cycle as the errors and reports list them.
func deadlockedRequests(cycle []waitgraph.Waiter) []DeadlockedRequest {
	requests := make([]DeadlockedRequest, len(cycle))
	for i, w := range cycle {
		w.Owner, w.Host = printableExcerpt([]byte(w.Owner)), printableExcerpt([]byte(w.Host))
		requests[i] = DeadlockedRequest(w)
	}
	return requests
}

// waitingNode is the node with which a call waits in line.
type waitingNode struct {
	node atomic.Pointer[primitives.Created] // nil before the call has joined
}

func (w *waitingNode) set(node primitives.Created) { w.node.Store(&node) }

// lineNode returns the node, with root before its path. It returns false before the call has
// joined.
func (w *waitingNode) lineNode(root string) (waitgraph.LineNode, bool) {
	node := w.node.Load()
	if node == nil {
		return waitgraph.LineNode{}, false
	}
	return waitgraph.LineNode{Node: waitgraph.WithRoot(root, node.Path), Zxid: node.Zxid}, true
}
