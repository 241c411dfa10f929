package framework

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// Errors that say why a call ended. Test for them with errors.Is.
var (
	// ErrSessionLost is returned when the session that a call or a grant belongs to has ended: a
	// server expired the session, or its proof of life lapsed. Everything that was granted to the
	// session has ended too.
	ErrSessionLost = failure.ErrSessionLost
	// ErrSuspended is returned when the connection was lost while a call was in flight that cannot
	// be repeated safely. The error of a write wraps ErrOutcomeUnknown too.
	ErrSuspended = failure.ErrSuspended
	// ErrOutcomeUnknown is returned when a write was sent and its answer did not come: the
	// connection or the session was lost, or the context ended; the error wraps that reason too.
	// The write may have happened, and may still happen in the next moments. Call Sync and read the
	// node before you write again: a write that is repeated at once may be applied twice, or undo a
	// write of another client.
	ErrOutcomeUnknown = failure.Sentinel("outcome unknown, read the node before you write again")
	// ErrClosed is returned when the client was closed, or the pool, registration, sequence,
	// counter, worker or Workflows that is called. The text says which.
	ErrClosed = failure.Sentinel("client closed")
	// ErrUnconfirmed is returned when a cleanup, such as a Release, Resign, Leave or Close, has
	// ended before the servers have confirmed it. The error wraps one reason, too:
	//
	//   - context.DeadlineExceeded: no answer came within Config.CleanupTimeout, or before the
	//     caller's deadline. The deletion goes on in the background while the process runs, and
	//     Client.Close waits for it.
	//   - ErrSessionLost or ErrClosed: the session has ended here, and with it all that it held.
	//     The servers delete its nodes when it has ended there, too: after a session timeout at the
	//     latest.
	//   - a refusal of the servers, such as ErrNoAuth: the client tries again until the session
	//     ends.
	//
	// That of Client.Close wraps none of these if no server could be reached: the servers end the
	// session after its timeout.
	ErrUnconfirmed = failure.ErrUnconfirmed
	// ErrAuthFailed is returned when a server refused the client's credentials, or wants SASL
	// authentication, which this client does not have.
	ErrAuthFailed = failure.Sentinel("authentication failed")
)

// Errors that a server answers with.
var (
	// ErrNoNode is returned when the node does not exist.
	ErrNoNode = failure.Sentinel("no node")
	// ErrNodeExists is returned when the node exists already.
	ErrNodeExists = failure.Sentinel("node exists")
	// ErrBadVersion is returned when a node does not have the version that the call names.
	ErrBadVersion = failure.Sentinel("bad version")
	// ErrNotEmpty is returned when a node to be deleted has children.
	ErrNotEmpty = failure.Sentinel("node has children")
	// ErrNoAuth is returned when the node's ACL does not allow the operation to this client.
	ErrNoAuth = failure.Sentinel("no permission")
	// ErrOverloaded is returned when the servers have throttled a request because they have too
	// much to do. They have not executed the request. The client repeats most requests, with
	// pauses, until the context of the call ends.
	ErrOverloaded = failure.ErrOverloaded
	// ErrQuotaExceeded is returned when a write would exceed a quota of the servers on a subtree,
	// which they enforce (enforceQuota). The write has not happened. The same write fails until an
	// operator or a client deletes nodes there, or an operator raises the quota.
	ErrQuotaExceeded = failure.Sentinel("quota of the servers exceeded")
	// ErrNodeGone is the cause of a hold's end when another client has deleted its node.
	ErrNodeGone = failure.Sentinel("node was deleted")
)

// Errors of what recipes have stored.
var (
	// ErrNewer is returned when a newer release has written a record that this one cannot read, or
	// must not rewrite. Update this program.
	ErrNewer = failure.Sentinel("written by a newer release")
	// ErrForeign is returned when a node at or below the path belongs to another program, another
	// recipe or another kind of the same recipe. The node is left as it is: use another path.
	ErrForeign = failure.ErrForeign
	// ErrMismatch is returned when the servers have stored other settings than this program has
	// given, such as the order of a queue or the number of members of a barrier. Give the stored
	// ones, or change what is stored; the error has both, and says how if that is possible.
	ErrMismatch = failure.ErrMismatch
	// ErrNotFound is returned when there is nothing with the name or id that was given, such as a
	// job, a run, a member or an instance. The text says what.
	ErrNotFound = failure.ErrNotFound
	// ErrBadRecord is returned when a record cannot be read: another program has written it, or it
	// is damaged. The error names the node. It stays as it is until somebody writes or deletes it.
	ErrBadRecord = failure.ErrBadRecord
	// ErrBadValue is returned when a value cannot be used: its codec, or JSON, cannot encode it or
	// decode what is stored into its type, or a check of the caller refuses it. Nothing was
	// written. It is also the reason of a dead letter of a queue that cannot be decoded.
	ErrBadValue = failure.ErrBadValue
	// ErrConflict is returned by a write that expects a state when another client has changed it:
	// a configuration value, a counter, the steps of a run. Nothing was written. Read again, and
	// decide again.
	ErrConflict = failure.ErrConflict
)

// Errors of functions that the caller has passed, and of operations that it has added.
var (
	// ErrPanic is returned when a function of the caller has panicked or ended its goroutine
	// (runtime.Goexit). The log has the stack of a panic.
	ErrPanic = failure.ErrPanic
	// ErrUnfinished is returned when functions of the caller have not returned within their grace
	// although their contexts have ended. They still run: end the process.
	ErrUnfinished = failure.ErrUnfinished
	// ErrRefused is returned when the servers have refused one of the operations that the caller
	// has added to a recipe's transaction (WithOps, AckWith). Nothing of the transaction was done.
	// The error also wraps a *TxError with the operation's index among those of the caller.
	ErrRefused = failure.ErrRefused
	// ErrTimeout is the cause with which the context of a function of the caller ends after the
	// time that its job, handler or step may take, and the reason of the failed attempt. It is also
	// returned by workflow.Await when the signal has not come within its timeout.
	ErrTimeout = failure.ErrTimeout
	// ErrDraining is the cause with which the context of a job's run or a queue's handler ends when
	// its scheduler, queue or Workflows was asked to end and the grace is over. Queue.Work and
	// Workflows.Work return it when functions had not returned by then; they have returned since,
	// and their items were given back.
	ErrDraining = failure.ErrDraining
)

// Errors of bad input.
var (
	// ErrInvalid is returned when an argument, an option or a value of a configuration cannot be
	// used, such as a path that is empty, relative or malformed. The text names it, and nothing was
	// written. A call with the same arguments returns it each time.
	ErrInvalid = failure.ErrInvalid
	// ErrTooLarge is returned when a request is larger than a server accepts, when the answer for a
	// node is larger than 64 MiB, or when a session would own more ephemeral nodes than the servers
	// can delete in one transaction (Config.MaxEphemeralBytes). In the last case release some
	// nodes, or use several clients. Recipes also return it for a search that would read more nodes
	// than its limit.
	ErrTooLarge = failure.Sentinel("too large")
)

// errInvalidConfig is ErrInvalid of a configuration.
var errInvalidConfig = failure.KindOf(ErrInvalid, "invalid configuration")

// OpError is the error of one operation on one path. Op is the operation, such as "create" or
// "lock". Path is the znode path below the client's root. Err is the reason; Unwrap returns it.
type OpError = failure.OpError

// TxError is returned when the servers refused a transaction: none of its operations has happened.
type TxError struct {
	// Index of the operation that was refused.
	Index int
	// Op and Path of that operation.
	Op, Path string
	// Err is the reason, such as ErrBadVersion.
	Err error
}

func (e *TxError) Error() string {
	return fmt.Sprintf("transaction refused by operation %d, %s %s: %v", e.Index, e.Op, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *TxError) Unwrap() error { return e.Err }

// ConnectError is returned by Connect when there was no session in time.
type ConnectError struct {
	// Err is why Connect gave up.
	Err error
	// Servers are all servers, each with its last failure.
	Servers []ServerError
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("no session: %v (%s)", e.Err, e.describeServers())
}

func (e *ConnectError) describeServers() string {
	parts := make([]string, len(e.Servers))
	for i, s := range e.Servers {
		parts[i] = s.Error()
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns why Connect gave up, and the servers' reasons.
func (e *ConnectError) Unwrap() []error {
	errs := []error{e.Err}
	for _, s := range e.Servers {
		if s.Err != nil {
			errs = append(errs, s.Err)
		}
	}
	return errs
}

// ServerError is why one server could not be used. Err is nil if it has not failed yet.
type ServerError struct {
	Server string
	Err    error
}

func (e ServerError) Error() string {
	if e.Err == nil {
		return e.Server + ": no answer yet"
	}
	// The error of a dial has the address, too: it says more only where Server is a name.
	return e.Server + ": " + strings.TrimPrefix(e.Err.Error(), "dial tcp "+e.Server+": ")
}
