package ids

import (
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrForeign is returned when the path holds something else. The node is left as it is.
	ErrForeign = failure.Sentinel("path is used by something else")
	// ErrNewer is returned when a newer release has written what this one cannot read.
	ErrNewer = recipe.ErrNewer
	// ErrSetBack is returned when a sequence's node was deleted, or shows a lower number than before: its numbers may have been given already. Write a number
	// there that is higher than all that were given, or use another path.
	ErrSetBack = failure.Sentinel("node was deleted or set back, its numbers may have been given already")
	// ErrExhausted is returned when there is no higher number.
	ErrExhausted = failure.Sentinel("no numbers are left")
	// ErrOverflow is returned when a counter's node has no room for the number. The counter is left as it is.
	ErrOverflow = failure.Sentinel("number has no room in the counter")
	// ErrChanged is returned by CompareAndSet when the counter has another number than was expected.
	ErrChanged = failure.Sentinel("counter has another number")
	// ErrClosed is returned when the sequence, counter or worker was closed. It is framework.ErrClosed too when the client was.
	ErrClosed = failure.Sentinel("closed")
	// ErrNoSlot is returned when each slot of a worker's path has an owner. Call again when another worker was closed or its session has ended, or use another path
	// with more slots.
	ErrNoSlot = failure.Sentinel("all slots are taken")
	// ErrMismatch is returned when the workers of the path have another number of slots, or another epoch. Use the same ones.
	ErrMismatch = failure.Sentinel("workers of the path are of another kind")
	// ErrOption is returned by every call when an option's value cannot be used.
	ErrOption = failure.Sentinel("invalid option")
)
