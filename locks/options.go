package locks

import (
	"errors"
	"fmt"
	"time"
)

// Option changes how a lock works. It fits all kinds of locks.
type Option interface {
	MutexOption
	RWLockOption
	SemaphoreOption
	ClaimOption
}

// MutexOption changes how a Mutex works.
type MutexOption interface{ applyToMutex(*lockOptions) error }

// RWLockOption changes how an RWLock works.
type RWLockOption interface{ applyToRWLock(*lockOptions) error }

// SemaphoreOption changes how a Semaphore works.
type SemaphoreOption interface{ applyToSemaphore(*lockOptions) error }

// ClaimOption changes how a Claim works.
type ClaimOption interface{ applyToClaim(*lockOptions) error }

// lockOptions are the settings that the options of one lock change.
type lockOptions struct {
	data         []byte // nil: an owner record
	onWait       func(ahead int)
	reentry      bool
	maxHold      time.Duration // 0: no limit
	asyncRelease bool
	kazoo        bool
	handoff      time.Duration // 0: none
	deadlock     DeadlockMode
}

// anyOption fits all kinds. Each With function returns it as an option of those kinds only that
// have a use for it.
type anyOption func(*lockOptions) error

func (o anyOption) applyToMutex(to *lockOptions) error     { return o(to) }
func (o anyOption) applyToRWLock(to *lockOptions) error    { return o(to) }
func (o anyOption) applyToSemaphore(to *lockOptions) error { return o(to) }
func (o anyOption) applyToClaim(to *lockOptions) error     { return o(to) }

// optionsOf applies the options of one kind of lock. It skips nil ones and returns the first error.
func optionsOf[O comparable](opts []O, apply func(O, *lockOptions) error) (all lockOptions, err error) {
	var none O
	for _, o := range opts {
		if o == none {
			continue
		}
		if failed := apply(o, &all); failed != nil && err == nil {
			err = failed
		}
	}
	return all, err
}

// WithData writes data into the contender's node instead of the owner's description, which is JSON.
// data may have up to 64 KiB.
func WithData(data []byte) Option {
	return anyOption(func(o *lockOptions) error {
		if len(data) > maxData {
			return fmt.Errorf("WithData: %d bytes, at most %d are allowed", len(data), maxData)
		}
		o.data = append([]byte{}, data...)
		return nil
	})
}

// maxData bounds what a contender writes into its node: lists of owners are read often.
const maxData = 64 << 10

// WithMaxHold ends each lease after d, with ErrMaxHold as its cause, and grants the lock to the
// next waiter. So a hold that its holder forgot to release ends, too. The holder must heed the
// lease's context. With WithLocalHandoff, d is the longest time of a whole slice: it counts from
// the grant of the node, and the turn that has the node then ends.
func WithMaxHold(d time.Duration) Option {
	return anyOption(func(o *lockOptions) error {
		if d <= 0 {
			return fmt.Errorf("WithMaxHold: %v, it must be more than 0", d)
		}
		o.maxHold = d
		return nil
	})
}

// WithAsyncRelease makes Release return once the deletion of the node is in the connection's queue,
// which saves the wait for the servers' answer. Later requests of this client reach the servers
// later than the deletion, unless the servers refuse the deletion at first, as a server does that
// throttles: the client then repeats it. A try of another client may still fail for a moment.
// Client.Close waits until the node is gone. A claim first checks that its node is still its own,
// which takes the time of one read.
func WithAsyncRelease() Option {
	return anyOption(func(o *lockOptions) error {
		o.asyncRelease = true
		return nil
	})
}

// WithOnWait calls onWait each time that a wait begins, with the number of contenders ahead. A
// semaphore counts waiters, and calls it with 0 when the first of them waits for permits. The
// waiting goroutine calls onWait. With WithLocalHandoff, one goroutine calls it for all waiting
// goroutines, and passes its panic on to the first waiter.
func WithOnWait(onWait func(ahead int)) interface {
	MutexOption
	RWLockOption
	SemaphoreOption
} {
	return anyOption(func(o *lockOptions) error {
		if onWait == nil {
			return errors.New("WithOnWait: the function is nil")
		}
		o.onWait = onWait
		return nil
	})
}

// WithDeadlockMode says what requests for this lock do about deadlocks across all processes:
// holders that wait for each other.
//
// A request with the context of a lease (see Lease.Context) makes that lease's holder wait. When it
// has waited for a second, it records in a node beside the lock what it waits for and what its
// caller holds, and looks for a cycle of such requests. In the default mode, DeadlockFail, the
// youngest request of the cycle fails with a *DeadlockError. Requests without a lease, and requests
// of less than a second, send no further requests.
func WithDeadlockMode(mode DeadlockMode) Option {
	return anyOption(func(o *lockOptions) error {
		if mode < DeadlockFail || mode > DeadlockOff {
			return fmt.Errorf("WithDeadlockMode: %d is no mode", mode)
		}
		o.deadlock = mode
		return nil
	})
}

// WithReentry grants a nested lease to a caller that locks with the context of its own lease (see
// Lease.Context): on the same node, with the same token, until the outer lease ends or the nested
// one is released. Goroutines that inherit the context share the hold. Without WithReentry such a
// call fails with ErrHeld.
func WithReentry() interface {
	MutexOption
	RWLockOption
} {
	return anyOption(func(o *lockOptions) error {
		o.reentry = true
		return nil
	})
}

// WithKazoo lets kazoo's own locks at the path (__lock__# and __rlock__#) take part, which are
// refused with framework.ErrForeign otherwise. Tell each of these to wait for Lockstep's by kazoo's
// extra_lock_patterns: ["lock-"] beside a Mutex; beside an RWLock, ["__WRIT__", "__READ__"] for a
// Lock or WriteLock and ["__WRIT__"] for a ReadLock. A kazoo lock without these patterns holds
// beside the others, and no client can see that from outside.
func WithKazoo() interface {
	MutexOption
	RWLockOption
} {
	return anyOption(func(o *lockOptions) error {
		o.kazoo = true
		return nil
	})
}

// WithLocalHandoff lets the goroutines that share a Mutex pass one node's lease among them for up
// to d, before the lock goes to the next contender in the line. A handoff is an exchange in memory
// instead of requests. The leases of one slice share the token, and Turn rises: what the lock
// protects compares both, as a pair. The goroutines take turns in the order of their calls. They
// wait in the line together: a goroutine that gives up loses no other goroutine's place. Among
// processes the line stays fair, with up to d for each.
//
// The servers cannot tell the turns of a slice apart. So a turn that has called Guard or Guards is
// the last of its slice: its node is deleted with it, and the next goroutine waits in the line.
func WithLocalHandoff(d time.Duration) MutexOption {
	return anyOption(func(o *lockOptions) error {
		if d <= 0 {
			return fmt.Errorf("WithLocalHandoff: %v, it must be more than 0", d)
		}
		o.handoff = d
		return nil
	})
}
