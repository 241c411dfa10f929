package ids

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrSetBack is returned when a sequence's node was deleted, or has a lower number than this
	// process has written: numbers from there on may have been given already. Write a number into
	// the node that is higher than all that were given, or use another path.
	ErrSetBack = failure.Sentinel("node was deleted or set back, its numbers may have been given already")
	// ErrExhausted is returned when a sequence has reached its last number, a worker's slot the end
	// of its 41 bits of time, or a directory of names 2^31 names. It is also returned when a
	// counter has no room for a number, and leaves the counter as it is.
	ErrExhausted = failure.Sentinel("no numbers are left")
	// ErrNoSlot is returned when each slot of the path has an owner. Call again when another worker
	// was closed or its session has ended, or use another path with more slots.
	ErrNoSlot = failure.Sentinel("all slots are taken")
)

// errOverflow is ErrExhausted of a counter.
var errOverflow = failure.KindOf(ErrExhausted, "number has no room in the counter")

// Kinds of errors of package framework, with texts of their own.
var (
	errChanged  = failure.KindOf(failure.ErrConflict, "counter has another number")
	errForeign  = failure.KindOf(failure.ErrForeign, "path is used by something else")
	errClosed   = failure.KindOf(framework.ErrClosed, "closed")
	errMismatch = failure.KindOf(failure.ErrMismatch, "path has another number of slots or another epoch")
	errOption   = failure.KindOf(failure.ErrInvalid, "invalid option")
)
