package locks

import (
	"errors"
	"fmt"
)

// Option changes how a lock works. Its error is returned by the first use of the lock.
type Option func(*Line) error

// WithData writes data into the contender's node instead of the owner's description, which is JSON.
func WithData(data []byte) Option {
	return func(l *Line) error {
		if len(data) > maxData {
			return fmt.Errorf("WithData: %d bytes, at most %d are taken", len(data), maxData)
		}
		l.data = append([]byte{}, data...)
		return nil
	}
}

// WithQueued calls queued each time that a wait begins, with the number of contenders ahead. It is
// called from the waiting goroutine.
func WithQueued(queued func(ahead int)) Option {
	return func(l *Line) error {
		if queued == nil {
			return errors.New("WithQueued: the function is nil")
		}
		l.queued = queued
		return nil
	}
}

// maxData bounds what a contender may write into its node: a list of owners is read often.
const maxData = 64 << 10
