package workflow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// maxReason is how many bytes are recorded of the text of an error or a reason.
const maxReason = 2000

// isPermanent reports whether an error of the step's function is one that a retry cannot fix.
func (o stepOptions) isPermanent(err error) bool {
	var marked *permanentError
	return errors.As(err, &marked) || slices.ContainsFunc(o.permanentErrors,
		func(permanent error) bool { return errors.Is(err, permanent) })
}

// failureOf returns what is recorded of an error.
func (o stepOptions) failureOf(err error) *stepFailure {
	f := &stepFailure{Text: stored.Excerpt(err.Error(), maxReason)}
	for _, permanent := range o.permanentErrors {
		if errors.Is(err, permanent) {
			f.Is = append(f.Is, stored.Excerpt(permanent.Error(), maxReason))
		}
	}
	return f
}

// saysNothingOfTheWork reports whether an error is only about this executor, or about the recording
// of a result: another executor, or another release, may succeed.
func saysNothingOfTheWork(err error) bool {
	var marked *permanentError
	if errors.As(err, &marked) && marked.ofEncoding {
		return true
	}
	for _, of := range []error{ErrWaiting, ErrEnded, framework.ErrSessionLost, framework.ErrSuspended,
		framework.ErrOutcomeUnknown, framework.ErrUnconfirmed, framework.ErrClosed} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// stepError is the error of a step that has failed permanently, made from its record.
type stepError struct {
	stepFailure
	permanentErrors []error // of the step's options
}

func (e *stepError) Error() string { return fmt.Sprintf("%v: %s", ErrStepFailed, e.Text) }

// Unwrap returns ErrStepFailed and the errors of WithPermanentErrors that the record names.
func (e *stepError) Unwrap() []error {
	wrapped := []error{ErrStepFailed}
	for _, permanent := range e.permanentErrors {
		if slices.Contains(e.Is, stored.Excerpt(permanent.Error(), maxReason)) {
			wrapped = append(wrapped, permanent)
		}
	}
	return wrapped
}
