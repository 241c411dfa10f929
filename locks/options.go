package locks

import (
	"errors"
	"fmt"
	"time"
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

// WithOnWait calls queued each time that a wait begins, with the number of contenders ahead: of a
// semaphore, of waiters, and with 0 when the first of them has to wait for permits. It is called from the
// waiting goroutine; with WithLocalHandoff, from one that asks for all who wait, and a panic of it is passed on to
// the first of them.
func WithOnWait(queued func(ahead int)) Option {
	return func(l *Line) error {
		if queued == nil {
			return errors.New("WithOnWait: the function is nil")
		}
		l.queued = queued
		return nil
	}
}

// WithReentry makes the lock grant a nested lease to whoever asks with the context of its own lease (see
// Lease.Context): on the same node, with the same token, ending with the outer one at the latest. Goroutines
// that inherit the context share the hold. Without it such an ask fails with ErrHeld.
func WithReentry() Option {
	return func(l *Line) error {
		l.reentry = true
		return nil
	}
}

// WithMaxHold ends each lease after d, with ErrMaxHold as its cause, and gives the lock to the next: a
// hold that somebody forgot to release ends too. The holder must heed the lease's context.
func WithMaxHold(d time.Duration) Option {
	return func(l *Line) error {
		if d <= 0 {
			return fmt.Errorf("WithMaxHold: %v, it must be more than 0", d)
		}
		l.maxHold = d
		return nil
	}
}

// WithAsyncRelease makes Release return once the deletion of the node is in the connection's queue,
// which saves the wait for the servers: what this client asks for later reaches them later. Another
// client's try may still fail for a moment. Client.Close still waits until the node is gone.
// A claim looks first whether its node is still its own, which takes the time of one read.
func WithAsyncRelease() Option {
	return func(l *Line) error {
		l.onWrite = true
		return nil
	}
}

// WithKazoo lets kazoo's own locks at the path (__lock__# and __rlock__#) take part, which are refused with
// ErrKindMixed otherwise. Each of these must be told to wait for Lockstep's by kazoo's extra_lock_patterns:
// ["lock-"] beside a Mutex; beside an RWLock, ["__WRIT__", "__READ__"] of a Lock or WriteLock and ["__WRIT__"] of a
// ReadLock. One that is not told holds beside the others, and nobody can see that from outside.
func WithKazoo() Option {
	return func(l *Line) error {
		l.kazoo = true
		return nil
	}
}

// maxData bounds what a contender may write into its node: a list of owners is read often.
const maxData = 64 << 10
