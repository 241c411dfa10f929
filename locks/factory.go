package locks

import "github.com/lockstep-go/lockstep/framework"

// Factory makes locks on one client.
type Factory struct{ client *framework.Client }

// NewFactory returns a factory on client.
func NewFactory(client *framework.Client) *Factory { return &Factory{client} }

// Mutex returns a mutex at path; see NewMutex.
func (f *Factory) Mutex(path string, opts ...MutexOption) *Mutex {
	return NewMutex(f.client, path, opts...)
}

// RWLock returns a read-write lock at path; see NewRWLock.
func (f *Factory) RWLock(path string, opts ...RWLockOption) *RWLock {
	return NewRWLock(f.client, path, opts...)
}

// Semaphore returns a semaphore of so many permits at path; see NewSemaphore.
func (f *Factory) Semaphore(path string, permits int, opts ...SemaphoreOption) *Semaphore {
	return NewSemaphore(f.client, path, permits, opts...)
}

// Claim returns a claim on path; see NewClaim.
func (f *Factory) Claim(path string, opts ...ClaimOption) *Claim {
	return NewClaim(f.client, path, opts...)
}
