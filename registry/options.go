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

// WithHealth calls check when the registration begins, and again each time this long after the
// former call has returned and its result was written. The context of a call ends after the same
// time. The instance is registered as disabled until check has returned nil. While check fails, it
// stays registered and is disabled, with a reason that begins with "unhealthy: " and has at most 4
// KiB of the error's text. A check does not enable an instance that was disabled by
// Instance.Disabled of Register, by Disable or by an operator. There is one exception: an instance
// whose payload is a text or a list has no reasons. If it is disabled once more while it is
// unhealthy, the next check that succeeds enables it. A panic of check, and the end of its
// goroutine, are errors.
func WithHealth(check func(context.Context) error, every time.Duration) RegisterOption {
	return func(o *registerOptions) error {
		if check == nil || every <= 0 {
			return fmt.Errorf("%w: WithHealth: an interval of %v: it must be above 0, and the check must not be nil",
				errOption, every)
		}
		o.health, o.every = check, every
		return nil
	}
}

// WithLinger sets how long Drain keeps the disabled instance registered, so that pools notice, by
// default 2 s.
func WithLinger(linger time.Duration) RegisterOption {
	return func(o *registerOptions) error {
		if linger < 0 {
			return fmt.Errorf("%w: WithLinger: %v, it must not be below 0", errOption, linger)
		}
		o.linger = linger
		return nil
	}
}

// Balancer is the rule by which a pool picks an instance.
type Balancer int

// The balancers.
const (
	// LeastLoaded draws two instances at random and picks the one with the smaller load: the moving
	// average of its latency, times its calls under way plus one, divided by its weight. While an
	// instance has no call under way, its average counts half as much for each 10 s since it last
	// changed, so that one that was slow gets calls again.
	LeastLoaded Balancer = iota
	// RoundRobin picks one instance after the other. It ignores weights.
	RoundRobin
	// Weighted draws an instance at random, by weight.
	Weighted
	// Rendezvous picks an instance by a hash of the key and the ids; see PickFor. A key keeps its
	// instance while that is enabled and not ejected, unless it moves to an instance that is new or
	// has a higher weight than before. Instances get keys by weight.
	Rendezvous
)

func (b Balancer) String() string {
	switch b {
	case LeastLoaded:
		return "least loaded"
	case RoundRobin:
		return "round robin"
	case Weighted:
		return "weighted"
	case Rendezvous:
		return "rendezvous"
	}
	return fmt.Sprintf("balancer %d", int(b))
}

// PoolOption changes how a pool picks.
type PoolOption func(*poolOptions) error

type poolOptions struct {
	balancer  Balancer
	failures  int32         // in a row, after which an instance is ejected
	ejection  time.Duration // how long it stays ejected
	threshold float64       // the panic threshold
	refresh   time.Duration
	file      string // its absolute path, or ""
}

func poolDefaults() poolOptions {
	return poolOptions{failures: 5, ejection: 10 * time.Second, threshold: 0.5, refresh: 30 * time.Second}
}

// WithBalancer sets the balancer, by default LeastLoaded.
func WithBalancer(b Balancer) PoolOption {
	return func(o *poolOptions) error {
		if b < LeastLoaded || b > Rendezvous {
			return fmt.Errorf("%w: balancer %d", errOption, b)
		}
		o.balancer = b
		return nil
	}
}

// WithEjection sets after how many failed calls in a row an instance is ejected, and for how long;
// by default 5 and 10 s. An ejected instance gets no calls. After that time one more failed call
// ejects it again, until a call succeeds. A pool counts the calls of its own process.
func WithEjection(failures int, d time.Duration) PoolOption {
	return func(o *poolOptions) error {
		if failures < 1 || failures > 1<<20 || d <= 0 {
			return fmt.Errorf("%w: ejection after %d failures for %v, both must be above 0", errOption, failures, d)
		}
		o.failures, o.ejection = int32(failures), d
		return nil
	}
}

// WithPanicThreshold sets the share of the enabled instances, 0 to 1, that must not be ejected, by
// default a half. If fewer are left, the pool ignores all ejections: so many failures rather have a
// cause in the caller or the network.
func WithPanicThreshold(share float64) PoolOption {
	return func(o *poolOptions) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("%w: panic threshold %v, it must be 0 to 1", errOption, share)
		}
		o.threshold = share
		return nil
	}
}

// WithRefresh sets after how long a pool reads all instances again without a change, on average, by
// default 30 s; each time it is drawn between half and one and a half of that. So the pool finds
// changes that other programs make to instances. It notices changes made by this package, and
// instances that come or go, at once.
func WithRefresh(every time.Duration) PoolOption {
	return func(o *poolOptions) error {
		if every <= 0 {
			return fmt.Errorf("%w: refresh each %v, it must be above 0", errOption, every)
		}
		o.refresh = every
		return nil
	}
}

// WithFile keeps the last list in a file, which NewPool reads: so a program can call the service
// before it has reached the servers. The file's directory must exist. The file is replaced
// atomically (a new file is written beside it, synced and renamed) and has the mode 0600. A file
// that is damaged or of another service is ignored with a warning. A stored list without instances
// is ignored, too: the pool waits for the servers then. A list that takes more than 16 MiB is not
// stored; a warning says so, and the file keeps the former list.
//
// Each pool needs a file of its own. In name, "{service}" stands for the name of the pool's
// service.
func WithFile(name string) PoolOption {
	return func(o *poolOptions) (err error) {
		if name == "" {
			return fmt.Errorf("%w: WithFile: the file has no name", errOption)
		}
		o.file, err = filepath.Abs(name)
		return err
	}
}
