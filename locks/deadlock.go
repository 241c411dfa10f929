package locks

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/waitline"
)

// DeadlockMode is what an ask does about a deadlock that it is part of; see WithDeadlockMode.
type DeadlockMode int

// The modes.
const (
	// DeadlockFail lets the youngest ask of a deadlock fail with a *DeadlockError. It is the
	// default.
	DeadlockFail DeadlockMode = iota
	// DeadlockReport lets the ask wait on. A deadlock is only logged and counted. If other asks of
	// it are in DeadlockFail, the youngest of those fails. But if only asks in DeadlockReport count
	// a lock of another process as held (WithHeldLocks), or one of another client, no ask fails:
	// that list may be wrong.
	DeadlockReport
	// DeadlockOff leaves the ask out: it writes no record, and Lockstep does not find deadlocks
	// that contain it.
	DeadlockOff
)

// DeadlockError is returned to the youngest ask of a deadlock: holders of locks that wait for each
// other. Release the leases under which you asked, and the other asks go on. It wraps ErrDeadlock.
//
// Guarantee: there was a moment at which all asks of the cycle waited, and each lock that an ask
// waited for was held by the next. Deadlocks through other systems, such as a database, are not
// found.
type DeadlockError struct {
	// Cycle are the asks, each of which waits for a lock that the next one holds, and the last one
	// for a lock of the first, which is this ask. A semaphore's waiter waits for several holders:
	// then Cycle lists all asks of the deadlock.
	Cycle []DeadlockedAsk
}

// DeadlockedAsk is one ask of a deadlock, as it describes itself.
type DeadlockedAsk struct {
	// Path is the lock that it waits for.
	Path string `json:"path"`
	// Holds are the locks of the deadlock that its caller holds.
	Holds []string `json:"holds"`
	// Owner, Host and PID are of the process that asks.
	Owner string `json:"owner"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	// Since is when it began to wait, by its own clock.
	Since time.Time `json:"since"`
	// Node is its node in the line; "" for an ask without a node of its own.
	Node string `json:"node,omitempty"`
	// Number rises from ask to ask: the ask with the highest one is the youngest. An ask gets it
	// after a second, or later if the servers refuse its record at first.
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
func (a DeadlockedAsk) String() string {
	who := a.Owner
	if a.Host != "" || a.PID != 0 {
		who = fmt.Sprintf("%s (%s, process %d)", a.Owner, a.Host, a.PID)
	}
	return fmt.Sprintf("%s holds %s and waits for %s since %s", who, strings.Join(a.Holds, ", "), a.Path,
		a.Since.UTC().Format(time.RFC3339))
}
