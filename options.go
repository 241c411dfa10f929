package lockstep

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// DefaultGrace is how long a service may take to stop, unless WithGrace sets it.
const DefaultGrace = 30 * time.Second

// Option changes how Run runs a service. It returns an error when its value cannot be used.
type Option func(*options) error

type options struct {
	grace   time.Duration
	signals []os.Signal
	health  *Health
	address string // of the pages of health, or ""
}

func newOptions(opts []Option) (options, error) {
	o := options{grace: DefaultGrace, signals: []os.Signal{os.Interrupt, syscall.SIGTERM}, health: &Health{}}
	for _, set := range opts {
		if set == nil {
			continue
		}
		if err := set(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// WithGrace sets how long the service may take from the signal to the end of Run. Functions have at
// most three quarters of it, after the registrations have left their pools. In Kubernetes,
// terminationGracePeriodSeconds must be longer. Default 30 s.
func WithGrace(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("WithGrace: %v: it must be positive", d)
		}
		o.grace = d
		return nil
	}
}

// WithSignals sets the signals that end the service. Without an argument none does, and the service
// ends with the context of Run. Default SIGINT and SIGTERM.
func WithSignals(signals ...os.Signal) Option {
	return func(o *options) error {
		for i, s := range signals {
			if s == nil {
				return fmt.Errorf("WithSignals: signal %d is nil", i)
			}
		}
		o.signals = signals
		return nil
	}
}

// WithProbes serves /livez and /readyz at an address, host:port or :port; see Health.
func WithProbes(address string) Option {
	return func(o *options) error {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return fmt.Errorf("WithProbes: %q: want host:port or :port", address)
		}
		o.address = address
		return nil
	}
}

// WithHealthState makes h tell the health of the service, for a program that serves it itself.
func WithHealthState(h *Health) Option {
	return func(o *options) error {
		if h == nil {
			return errors.New("WithHealthState: the Health is nil")
		}
		o.health = h
		return nil
	}
}
