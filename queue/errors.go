package queue

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned when the Queue was closed.
	ErrClosed = errors.New("queue closed")
	// ErrLost is returned when a delivery is acknowledged or given back after it has ended, with its session,
	// its lock or its nodes: somebody else may have the item by now, or has had it.
	ErrLost = errors.New("delivery lost: somebody else may have the item")
	// ErrSettled is returned when a delivery was acknowledged or given back before, and is the cause of the end
	// of its context then.
	ErrSettled = errors.New("delivery settled")
	// ErrUnknown is returned when a put was on its way when its context or the session ended, and nobody can
	// tell any more whether it was done.
	ErrUnknown = errors.New("outcome unknown")
	// ErrEmpty is returned when there is no item to look at, or none that can be claimed now.
	ErrEmpty = errors.New("queue is empty")
	// ErrProcessingTimeout is the cause of the end of a handler's context in Work when it has worked on an item for too long
	// (WithProcessingTimeout), and the reason of the failed attempt.
	ErrProcessingTimeout = errors.New("processing took too long")
	// ErrDraining is the cause of the end of a handler's context in Work when the grace is over (WithGrace).
	ErrDraining = errors.New("consumer is draining: its grace is over")
	// ErrUnfinished is returned by Work when handlers had not returned at the end of the grace. Their items were given back.
	ErrUnfinished = errors.New("handlers did not finish in time")
	// ErrFull is returned when a bounded queue that refuses producers has no room, or others wait for it.
	ErrFull = errors.New("queue is full")
	// ErrBacklog is returned by PutAsync when as many bytes wait to be sent as WithBacklog allows. Nothing was put.
	ErrBacklog = errors.New("too much waits to be sent")
	// ErrDuplicate is returned when an item with this id was put within the window before. Nothing was put.
	ErrDuplicate = errors.New("duplicate item")
	// ErrRefused is returned when one of the caller's own operations was refused that go with a put or an acknowledgement
	// (WithOps, AckWith). Nothing was done. The error wraps a *framework.TxError too, whose Index is that among these operations.
	ErrRefused = errors.New("an operation of the caller's own was refused")
	// ErrMismatch is returned when the queue's record says something else than this Queue was made with.
	ErrMismatch = errors.New("queue differs from the stored one")
	// ErrNotQueue is returned when the path belongs to something that is no queue.
	ErrNotQueue = errors.New("path is not a queue")
	// ErrNewer is returned when the queue, or an item, was stored by a later release that this one cannot read.
	ErrNewer = errors.New("stored by a later release")
	// ErrCodec is returned when an item cannot be encoded, and is the cause of a dead letter that cannot be decoded.
	ErrCodec = errors.New("codec")
	// ErrOption is returned when an argument or an option cannot be used.
	ErrOption = errors.New("invalid option")
)

// MismatchError tells both values. It wraps ErrMismatch.
type MismatchError struct {
	// What differs, such as "order".
	What string
	// Stored and Given are the two values.
	Stored, Given string
}

func (e *MismatchError) Error() string {
	how := ""
	switch e.What {
	case mismatchCapacity:
		how = "; leave WithCapacity out, or change what is stored with SetCapacity"
	case mismatchDedup:
		how = "; leave WithDedup out, or change what is stored with SetDedup"
	}
	return fmt.Sprintf("%v: the stored %s is %s, given is %s%s", ErrMismatch, e.What, e.Stored, e.Given, how)
}

// What can differ and be changed.
const (
	mismatchCapacity = "capacity"
	mismatchDedup    = "deduplication"
)

// Unwrap returns ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// errNoDedup refuses ids that nobody would remember.
var errNoDedup = fmt.Errorf("%w: WithID: the queue does not remember ids; make it with WithDedup", ErrOption)
