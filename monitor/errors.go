package monitor

import "github.com/lockstep-go/lockstep/internal/failure"

// Kinds of errors of package framework, with texts of their own.
var (
	errOption  = failure.KindOf(failure.ErrInvalid, "invalid option")
	errForeign = failure.KindOf(failure.ErrForeign, "path is used by a monitor of another root")
	errPanic   = failure.KindOf(failure.ErrPanic, "it panicked")
)
