package ui

import "errors"

// ErrInvalid is returned when an argument or an option is wrong. The error names it.
var ErrInvalid = errors.New("invalid web page")
