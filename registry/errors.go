package registry

import "github.com/lockstep-go/lockstep/internal/failure"

var (
	// ErrNoInstance is returned by Pick when the service has no instance that is enabled. Call
	// again later.
	ErrNoInstance = failure.Sentinel("no instance is enabled")
	// ErrNotFound is returned when the service has no instance with the id. List the service's
	// instances.
	ErrNotFound = failure.Sentinel("no such instance")
	// ErrTaken is returned by Register when a living session has an instance with the same id.
	// Choose another id, or leave it empty.
	ErrTaken = failure.Sentinel("id is taken by a living session")
	// ErrInvalid is returned when an instance or the name of a service cannot be used, or a node's
	// data is not an instance. The text says why.
	ErrInvalid = failure.Sentinel("invalid instance")
	// ErrOption is returned by Register, and by every call of a pool, when an option's value cannot
	// be used.
	ErrOption = failure.Sentinel("invalid option")
	// ErrClosed is returned when the registration or the pool was closed. When the client was
	// closed, Registration.Err and the calls of a pool return framework.ErrClosed instead.
	ErrClosed = failure.Sentinel("closed")
)
