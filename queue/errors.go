package queue

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

var (
	// ErrLost is returned when a delivery is acknowledged or given back after it has ended, with
	// its session, its lock or its nodes: another consumer may have, or have had, the item.
	ErrLost = errors.New("delivery lost: another consumer may have the item")
	// ErrSettled is returned when a delivery was acknowledged or given back before. It is also the
	// cause with which the context of a settled delivery ends.
	ErrSettled = errors.New("delivery settled")
	// ErrEmpty is returned when the queue has no item, or no item that can be claimed now.
	ErrEmpty = errors.New("queue is empty")
	// ErrFull is returned when a bounded queue has no room, or other producers wait for room, and
	// the put does not wait (WithFailWhenFull, PutAsync, Requeue).
	ErrFull = errors.New("queue is full")
	// ErrBacklog is returned by PutAsync when as many bytes wait to be sent as WithBacklog allows.
	// The item was not put.
	ErrBacklog = errors.New("too many bytes wait to be sent")
	// ErrDuplicate is returned when an item with the same id was put shortly before (WithDedup).
	// The item was not put again.
	ErrDuplicate = errors.New("duplicate item")
	// ErrTaken is returned by Cancel when a consumer has the item now, or had it before. The item
	// was not cancelled.
	ErrTaken = errors.New("a consumer has the item")
	// ErrDone is returned by Cancel when the item has left the queue: it was acknowledged,
	// cancelled, purged, or is a dead letter.
	ErrDone = errors.New("the item is not in the queue any more")
)

// MismatchError says which option differs from the queue's record. It wraps framework.ErrMismatch.
type MismatchError struct {
	// What is the property that differs, such as "order".
	What string
	// Stored is the value in the record, Given that of the option.
	Stored, Given string
}

func (e *MismatchError) Error() string {
	how := ""
	switch e.What {
	case mismatchCapacity:
		how = "; leave WithCapacity out, or change what is stored with SetCapacity"
	case mismatchDedup:
		how = "; leave WithDedup out, or change what is stored with SetDedup"
	case mismatchRetry:
		how = "; leave WithRetry out, or change what is stored with SetRetry"
	}
	return fmt.Sprintf("%v: the stored %s is %s, given is %s%s", errMismatch, e.What, e.Stored, e.Given, how)
}

// The values that can be changed after the queue was made.
const (
	mismatchCapacity = "capacity"
	mismatchDedup    = "deduplication"
	mismatchRetry    = "retry policy"
)

// Unwrap returns framework.ErrMismatch.
func (e *MismatchError) Unwrap() error { return errMismatch }

// errNoDedup is the error of a put with an id into a queue that does not remember ids.
var errNoDedup = fmt.Errorf("%w: WithID: the queue does not remember ids; make it with WithDedup", errOption)

// Kinds of errors of package framework, with texts of their own.
var (
	errClosed   = failure.KindOf(framework.ErrClosed, "queue closed")
	errCodec    = failure.KindOf(failure.ErrBadValue, "codec")
	errOverran  = failure.KindOf(failure.ErrDraining, "not finished in time")
	errDraining = failure.KindOf(failure.ErrDraining, "consumer is draining: its grace is over")

	errProcessingTimeout = failure.KindOf(failure.ErrTimeout, "processing took too long")
	errNotClaimed        = failure.KindOf(failure.ErrNotFound, "the consumer does not have the item any more")
	errUnknownKind       = failure.KindOf(failure.ErrNotFound, "no handler for this kind of items")

	errPanic     = failure.KindOf(failure.ErrPanic, "panic")
	errUnknown   = failure.KindOf(framework.ErrOutcomeUnknown, "outcome unknown")
	errUnknownID = failure.KindOf(failure.ErrNotFound, "unknown id")
	errRefused   = failure.KindOf(failure.ErrRefused, "an operation of the caller was refused")
	errMismatch  = failure.KindOf(failure.ErrMismatch, "queue differs from the stored one")
	errNotQueue  = queuelayout.ErrNotQueue
	errOption    = failure.KindOf(failure.ErrInvalid, "invalid option")
)

// isAnswerLost reports whether the answer of a request was lost, so that a later request may find
// out what it has done. errUnknown says that none can.
func isAnswerLost(err error) bool {
	return errors.Is(err, framework.ErrOutcomeUnknown) && !errors.Is(err, errUnknown)
}
