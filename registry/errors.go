package registry

import "github.com/lockstep-go/lockstep/internal/failure"

var (
	// ErrNoInstance is returned when the service has no instance that is enabled. Call again later.
	ErrNoInstance = failure.Sentinel("no instance is enabled")
	// ErrNotFound is returned when there is no instance with that id. List the service's instances.
	ErrNotFound = failure.Sentinel("no such instance")
	// ErrTaken is returned when a living session of another process has an instance with the same id. Choose another id, or leave it empty.
	ErrTaken = failure.Sentinel("id is taken by another session")
	// ErrInvalid is returned when an instance cannot be registered, or what is stored is none. The text says why.
	ErrInvalid = failure.Sentinel("invalid instance")
	// ErrOption is returned by every call when an option's value cannot be used.
	ErrOption = failure.Sentinel("invalid option")
	// ErrClosed is returned when the registration or the pool was closed. It is framework.ErrClosed too when the client was.
	ErrClosed = failure.Sentinel("closed")
)
