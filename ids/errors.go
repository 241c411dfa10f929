package ids

import (
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrForeign is returned when the node at the path has other data than a node of this kind. The
	// node is left as it is.
	ErrForeign = failure.Sentinel("path is used by something else")
	// ErrSetBack is returned when a sequence's node was deleted, or has a lower number than this
	// process has written: numbers from there on may have been given already. Write a number into
	// the node that is higher than all that were given, or use another path.
	ErrSetBack = failure.Sentinel("node was deleted or set back, its numbers may have been given already")
	// ErrExhausted is returned when a sequence has reached its last number, a worker's slot the end
	// of its 41 bits of time, or a directory of names 2^31 names.
	ErrExhausted = failure.Sentinel("no numbers are left")
	// ErrOverflow is returned when a number is outside the range of the counter. The counter is
	// left as it is.
	ErrOverflow = failure.Sentinel("number has no room in the counter")
	// ErrChanged is returned by CompareAndSet when the counter has another number than was
	// expected.
	ErrChanged = failure.Sentinel("counter has another number")
	// ErrClosed is returned when the sequence, counter or worker was closed. When the client was
	// closed, calls return framework.ErrClosed instead.
	ErrClosed = failure.Sentinel("closed")
	// ErrNoSlot is returned when each slot of the path has an owner. Call again when another worker
	// was closed or its session has ended, or use another path with more slots.
	ErrNoSlot = failure.Sentinel("all slots are taken")
	// ErrMismatch is returned when the path's node has another number of slots, or another epoch,
	// than this worker. Use those of the node.
	ErrMismatch = failure.Sentinel("path has another number of slots or another epoch")
	// ErrOption is returned by every call when an option's value cannot be used.
	ErrOption = failure.Sentinel("invalid option")
)
