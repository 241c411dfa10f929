// Package failure makes the errors that framework and the recipes return: sentinels, errors of an
// operation on a path, and errors of a context that has ended.
package failure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
)

// sentinel is an error value that says why a call failed. The code of this module tests for
// sentinels, which Ended therefore treats differently.
type sentinel struct {
	text string
	of   error // the sentinel that this is a kind of, or nil
}

// Sentinel returns a new sentinel. No two sentinels are equal.
func Sentinel(text string) error { return &sentinel{text, nil} }

// KindOf returns a sentinel with a text of its own that wraps another one, which callers test for.
func KindOf(of error, text string) error { return &sentinel{text, of} }

func (s *sentinel) Error() string { return s.text }

func (s *sentinel) Unwrap() error { return s.of }

// The sentinels of transient failures, which package framework exports and documents.
var (
	ErrSessionLost = Sentinel("session lost")
	ErrSuspended   = Sentinel("connection suspended")
	ErrOverloaded  = Sentinel("servers are overloaded")
)

// The sentinels that recipes have in common, which package framework exports and documents.
var (
	ErrInvalid    = Sentinel("invalid argument")
	ErrForeign    = Sentinel("path is used by something else")
	ErrMismatch   = Sentinel("the stored settings differ")
	ErrNotFound   = Sentinel("not found")
	ErrRefused    = Sentinel("an operation of the caller was refused")
	ErrPanic      = Sentinel("the function panicked")
	ErrUnfinished = Sentinel("not finished in time")
	ErrBadRecord  = Sentinel("record cannot be read")
	ErrBadValue   = Sentinel("value cannot be used")
	ErrConflict   = Sentinel("changed meanwhile")

	// ErrInvalidPath is ErrInvalid of a path.
	ErrInvalidPath = KindOf(ErrInvalid, "invalid path")
)

// Causes with which the contexts of the caller's functions end. They are no sentinels: Ended finds
// them.
var (
	ErrTimeout  = errors.New("timed out")
	ErrDraining = errors.New("the grace is over")
)

// ErrUnconfirmed says that a cleanup has ended before the servers have confirmed it. Package
// framework exports and documents it.
var ErrUnconfirmed = Sentinel("the servers have not confirmed the cleanup")

// Unconfirmed returns an error that wraps ErrUnconfirmed and the reason, or nil if the reason is
// nil.
func Unconfirmed(reason error) error {
	if reason == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, reason)
}

// IsTransient reports whether the same call may succeed later on the same client: the connection or
// the session was lost, or the servers are overloaded. It returns false for a closed client, a
// refusal and invalid arguments.
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

// Wrap returns an OpError around err, or nil if err is nil. If err is an OpError of the same path,
// Wrap replaces it, since the operation that the caller has called says more than a step of it.
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

// Ended returns an error for a ctx that is done. It wraps ctx.Err(), and its text includes the
// cause.
//
// For errors.Is and errors.As the error also wraps the cause, except for sentinels, and for error
// types of this package and of framework. Suppose that a context was cancelled because some other
// call found no node. Then errors.Is(err, ErrNoNode) must be false for a call with this context,
// since the servers have not answered that to this call.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return &endedError{err, cause}
}

// endedError is the error of an ended context with a cause other than ctx.Err().
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

// describesCall reports whether errors of a type describe the result of a call: the types of this
// package and of framework do.
func describesCall(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == ownPackage || t.PkgPath() == frameworkPackage
}

// ErrLoopLeft ends an iteration because the caller has left its range loop.
var ErrLoopLeft = errors.New("the loop was left")

// LoopEnd returns the error that an iteration yields last: err with the operation and the path. It
// returns nil if ctx has ended or if the caller has left the loop, since the iteration then ends
// without an error.
func LoopEnd(ctx context.Context, op, path string, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrLoopLeft) {
		return nil
	}
	return Wrap(op, path, err)
}

// SplitJoined returns the errors that errors.Join has joined in err, at any depth, or err itself.
func SplitJoined(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, SplitJoined(e)...)
	}
	return all
}

// Collect returns the values that a sequence yields without an error, and its errors, joined.
func Collect[T any](sequence iter.Seq2[T, error]) (values []T, err error) {
	var errs []error
	for value, err := range sequence {
		if err != nil {
			errs = append(errs, err)
		} else {
			values = append(values, value)
		}
	}
	return values, errors.Join(errs...)
}
