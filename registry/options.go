package registry

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// RegisterOption changes how an instance is registered.
type RegisterOption func(*registerOptions) error

type registerOptions struct {
	health func(context.Context) error
	every  time.Duration
	linger time.Duration
}

// WithHealth calls a check at once and then at an interval, with a context that lasts as long as the interval. While the check fails, the instance stays registered and
// is disabled. A check does not enable an instance that an operator has disabled.
func WithHealth(check func(context.Context) error, every time.Duration) RegisterOption {
	return func(o *registerOptions) error {
		if check == nil || every <= 0 {
			return fmt.Errorf("%w: a health check each %v, it must be a function and a time above 0", ErrOption, every)
		}
		o.health, o.every = check, every
		return nil
	}
}

// WithLinger sets how long Drain waits for pools to notice, by default 2 s.
func WithLinger(linger time.Duration) RegisterOption {
	return func(o *registerOptions) error {
		if linger < 0 {
			return fmt.Errorf("%w: %v to linger, it must not be below 0", ErrOption, linger)
		}
		o.linger = linger
		return nil
	}
}

// Balancer is a way to choose among instances.
type Balancer int

// The balancers.
const (
	// LeastLoaded draws two instances at random and takes the one with the smaller load: the moving average of its latency, times its calls under way, by its weight.
	LeastLoaded Balancer = iota
	// RoundRobin takes one after the other.
	RoundRobin
	// Weighted draws by weight.
	Weighted
	// Rendezvous takes the same instance for the same key while that instance is registered; see PickFor.
	Rendezvous
)

// PoolOption changes how a pool picks.
type PoolOption func(*poolOptions) error

type poolOptions struct {
	balancer  Balancer
	failures  int32
	ejection  time.Duration
	threshold float64
	refresh   time.Duration
	file      string
}

func poolDefaults() poolOptions {
	return poolOptions{failures: 5, ejection: 10 * time.Second, threshold: 0.5, refresh: 30 * time.Second}
}

// WithBalancer chooses another balancer than LeastLoaded.
func WithBalancer(b Balancer) PoolOption {
	return func(o *poolOptions) error {
		if b < LeastLoaded || b > Rendezvous {
			return fmt.Errorf("%w: balancer %d", ErrOption, b)
		}
		o.balancer = b
		return nil
	}
}

// WithEjection sets after how many failures in a row an instance gets no calls, and for how long; by default 5 and 10 s.
func WithEjection(failures int, d time.Duration) PoolOption {
	return func(o *poolOptions) error {
		if failures < 1 || failures > 1<<20 || d <= 0 {
			return fmt.Errorf("%w: ejection after %d failures for %v, both must be above 0", ErrOption, failures, d)
		}
		o.failures, o.ejection = int32(failures), d
		return nil
	}
}

// WithPanicThreshold sets the least share of instances that are not ejected, 0 to 1, by default a half. If fewer are left, the pool ignores ejections: the cause of
// so many failures is rather the caller or the network.
func WithPanicThreshold(share float64) PoolOption {
	return func(o *poolOptions) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("%w: panic threshold %v, it must be 0 to 1", ErrOption, share)
		}
		o.threshold = share
		return nil
	}
}

// WithRefresh sets how often a pool reads all instances again, by default 30 s. So it finds changes of instances by other programs. It notices the changes of this package
// at once.
func WithRefresh(every time.Duration) PoolOption {
	return func(o *poolOptions) error {
		if every <= 0 {
			return fmt.Errorf("%w: refresh each %v, it must be above 0", ErrOption, every)
		}
		o.refresh = every
		return nil
	}
}

// WithFile keeps the last list in a file, which NewPool reads: so a program calls the service while the servers cannot be reached yet. Its directory must exist. The file is replaced at
// once (written beside it, synced, renamed), has the mode 0600, and is ignored with a warning if it is damaged or of another service. A list without instances is not read: the pool waits for
// the servers then. Each pool needs a file of its own.
func WithFile(name string) PoolOption {
	return func(o *poolOptions) (err error) {
		if name == "" {
			return fmt.Errorf("%w: the file has no name", ErrOption)
		}
		o.file, err = filepath.Abs(name)
		return err
	}
}
