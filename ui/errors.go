package ui

import "github.com/lockstep-go/lockstep/internal/failure"

var errInvalid = failure.KindOf(failure.ErrInvalid, "invalid web page")
