package registry

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrNoInstance is returned by Pick when the service has no instance that is enabled. Call
	// again later.
	ErrNoInstance = failure.Sentinel("no instance is enabled")
	// ErrIDInUse is returned by Register when a living session has an instance with the same id.
	// Choose another id, or leave it empty.
	ErrIDInUse = failure.Sentinel("id is taken by a living session")
)

// Kinds of errors of package framework, with texts of their own.
var (
	errNotFound = failure.KindOf(failure.ErrNotFound, "no such instance")
	errInvalid  = failure.KindOf(failure.ErrInvalid, "invalid instance")
	errOption   = failure.KindOf(failure.ErrInvalid, "invalid option")
	errClosed   = failure.KindOf(framework.ErrClosed, "closed")
)
