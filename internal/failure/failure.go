// Package failure makes the errors that framework and the recipes return: sentinels, the error of an operation on a path, and the error of a context that has ended.
package failure

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
)

// sentinel is an error that tells why a call failed. Code of this module decides by it.
type sentinel struct{ text string }

// Sentinel returns a new sentinel, which is equal to itself only.
func Sentinel(text string) error { return &sentinel{text} }

func (s *sentinel) Error() string { return s.text }

// The sentinels of failures after which the same call may succeed. framework documents them.
var (
	ErrSessionLost = Sentinel("session lost")
	ErrSuspended   = Sentinel("connection suspended")
	ErrOverloaded  = Sentinel("servers are overloaded")
)

// IsTransient reports whether the same call may succeed later on the same client: the connection
// or the session was lost, or the servers are overloaded. A closed client, a refusal and bad input stay as they are.
func IsTransient(err error) bool {
	return errors.Is(err, ErrSessionLost) || errors.Is(err, ErrSuspended) || errors.Is(err, ErrOverloaded)
}

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

// Wrap returns an OpError around err, or nil when err is nil. An OpError of the same path is replaced:
// the operation that the caller asked for says more than the steps it was made of.
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

// Ended returns why ctx is done: an error that is ctx.Err, with a text that tells the cause too.
//
// It is also its cause, for errors.Is and errors.As, unless that is a sentinel of this package or an error type of this package or framework:
// a context that was cancelled because of a missing node somewhere else must not be taken for a server's
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
	_, own := target.(*sentinel)
	return !own && errors.Is(e.cause, target)
}

func (e *endedError) As(target any) bool {
	return !describesCall(reflect.TypeOf(target).Elem()) && errors.As(e.cause, target)
}

// ownPackage is the path of this package, and frameworkPackage that of framework.
var (
	ownPackage       = reflect.TypeFor[OpError]().PkgPath()
	frameworkPackage = path.Join(path.Dir(path.Dir(ownPackage)), "framework")
)

// describesCall reports whether errors of a type say what became of a call: those of this package and of framework do.
func describesCall(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == ownPackage || t.PkgPath() == frameworkPackage
}

// ErrLoopLeft ends a loop over values because its caller has left it.
var ErrLoopLeft = errors.New("the loop was left")

// LoopEnd returns the error that a loop over values yields last, with the operation and the path, or nil if the loop ends without one: its ctx has ended, or its
// caller has left it.
func LoopEnd(ctx context.Context, op, path string, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrLoopLeft) {
		return nil
	}
	return Wrap(op, path, err)
}
