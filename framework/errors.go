package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors that tell why a call ended. Test for them with errors.Is.
var (
	// ErrSessionLost is returned when the session that a call or a grant belongs to has ended:
	// a server expired it, or its proof of life lapsed. Everything granted to it is gone.
	ErrSessionLost = errors.New("session lost")
	// ErrSuspended is returned when the connection was lost while a call was in flight that cannot
	// be repeated safely. Of a write the error is ErrOutcomeUnknown too.
	ErrSuspended = errors.New("connection suspended")
	// ErrOutcomeUnknown is returned when a write was sent and its answer did not come: the connection or the session was lost, or the
	// context ended, which the error is too. The write has happened, has not, or may happen in the next moments. Read the node, after Sync,
	// before you write again: repeating the write at once may apply it twice, or undo somebody else's.
	ErrOutcomeUnknown = errors.New("outcome unknown, read the node before you write again")
	// ErrClosed is returned when the client was closed.
	ErrClosed = errors.New("client closed")
	// ErrAuthFailed is returned when a server refused the client's credentials, or wants SASL authentication, which this client does not have.
	ErrAuthFailed = errors.New("authentication failed")
)

// Errors that a server answers with.
var (
	// ErrNoNode is returned when the node does not exist.
	ErrNoNode = errors.New("no node")
	// ErrNodeExists is returned when the node exists already.
	ErrNodeExists = errors.New("node exists")
	// ErrBadVersion is returned when a node has another version than was asked for.
	ErrBadVersion = errors.New("bad version")
	// ErrNotEmpty is returned when a node to be deleted has children.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoAuth is returned when the client may not do that to the node.
	ErrNoAuth = errors.New("no permission")
	// ErrOverloaded is returned when the servers have put a transaction off because they have too much to do. The transaction has not happened. Most calls
	// repeat themselves, with pauses, until their context ends.
	ErrOverloaded = errors.New("servers are overloaded")
	// ErrQuotaExceeded is returned when a write would exceed a quota of the servers on a subtree, which they enforce (enforceQuota). The write has not
	// happened. The same write fails until somebody deletes nodes there or raises the quota.
	ErrQuotaExceeded = errors.New("quota of the servers exceeded")
	// ErrNodeGone is the cause of a hold's end when its node was deleted by somebody else.
	ErrNodeGone = errors.New("node was deleted")
)

// Errors of bad input.
var (
	// ErrInvalidConfig is returned when a configuration value cannot be used.
	ErrInvalidConfig = errors.New("invalid configuration")
	// ErrInvalidPath is returned when a znode path is empty, relative or malformed.
	ErrInvalidPath = errors.New("invalid path")
	// ErrTooLarge is returned when a request would exceed what a server accepts, or a session's ephemeral nodes what the servers can delete with it
	// (Config.MaxEphemeralBytes): release some, or use several clients.
	ErrTooLarge = errors.New("too large")
)

// OpError is the error of one operation on one path.
type OpError struct {
	// Op is the operation, such as "create" or "lock".
	Op string
	// Path is the znode path, below the client's root.
	Path string
	// Err is the reason.
	Err error
}

func (e *OpError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// TxError is returned when a transaction was refused: none of its operations has happened.
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
	// Servers are all servers, each with the last reason that it gave.
	Servers []ServerError
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("no session: %v (%s)", e.Err, e.reasons())
}

func (e *ConnectError) reasons() string {
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
	return fmt.Sprintf("%s: %v", e.Server, e.Err)
}

// Wrap returns an OpError around err, or nil when err is nil. An OpError of the same path is replaced:
// what was asked for says more than the steps it was made of.
func Wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var inner *OpError
	if errors.As(err, &inner) && inner.Path == path && inner.Error() == err.Error() {
		err = inner.Err
	}
	return &OpError{Op: op, Path: path, Err: err}
}

// IsTransient reports whether the same call may succeed later on the same client: the connection
// or the session was lost, or the servers are overloaded. A closed client, a refusal and bad input stay as they are.
func IsTransient(err error) bool {
	return errors.Is(err, ErrSessionLost) || errors.Is(err, ErrSuspended) || errors.Is(err, ErrOverloaded)
}

// Ended returns why ctx is done: an error that is ctx.Err, with a text that tells the cause too.
//
// It is also its cause, for errors.Is and errors.As, unless that is one of this package's errors: a
// context that was cancelled because of a missing node somewhere else must not be taken for a server's
// answer here.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return &endedError{err, cause}
}

// endedError is the end of a context that has a cause of its own.
type endedError struct{ err, cause error }

func (e *endedError) Error() string { return fmt.Sprintf("%v: %v", e.err, e.cause) }

func (e *endedError) Unwrap() error { return e.err }

func (e *endedError) Is(target error) bool {
	return !slices.Contains(own, target) && errors.Is(e.cause, target)
}

func (e *endedError) As(target any) bool {
	switch target.(type) {
	case **OpError, **TxError, **ConnectError, *ServerError:
		return false
	}
	return errors.As(e.cause, target)
}

// own are the errors that code of this module decides by.
var own = []error{
	ErrSessionLost, ErrSuspended, ErrClosed, ErrAuthFailed, ErrNoNode, ErrNodeExists, ErrBadVersion, ErrNotEmpty,
	ErrNoAuth, ErrNodeGone, ErrOutcomeUnknown, ErrOverloaded, ErrQuotaExceeded, ErrInvalidConfig, ErrInvalidPath, ErrTooLarge,
}
