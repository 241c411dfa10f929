package redislock

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Option changes how a lock works. A wrong one makes every call of the lock fail.
type Option func(*options) error

type options struct {
	expiry         time.Duration
	fixed          bool // no renewal
	maxHold        time.Duration
	reentry        bool
	inOrder        bool
	onRenewalError func(error)
	log            *slog.Logger
	providers      providers
}

// The bounds of an expiry.
const (
	DefaultExpiry = 30 * time.Second
	MinExpiry     = 100 * time.Millisecond
	MaxExpiry     = 24 * time.Hour
)

// WithExpiry says after how long the server gives the lock to others when its holder is gone. By
// default DefaultExpiry, at least MinExpiry, at most MaxExpiry.
func WithExpiry(d time.Duration) Option {
	return func(o *options) error {
		if d < MinExpiry || d > MaxExpiry {
			return fmt.Errorf("WithExpiry: %v, it must be from %v to %v", d, MinExpiry, MaxExpiry)
		}
		o.expiry = d
		return nil
	}
}

// WithoutRenewal lets a lease end when its expiry is over, without renewals.
func WithoutRenewal() Option {
	return func(o *options) error {
		o.fixed = true
		return nil
	}
}

// WithMaxHold ends each lease after d, with locks.ErrMaxHold as its cause.
func WithMaxHold(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("WithMaxHold: %v, it must be more than 0", d)
		}
		o.maxHold = d
		return nil
	}
}

// WithReentry grants a nested lease to a caller that locks with the context of its own lease, as
// locks.WithReentry does. Without it such a call fails with locks.ErrHeld.
func WithReentry() Option {
	return func(o *options) error {
		o.reentry = true
		return nil
	}
}

// WithArrivalOrder grants a Mutex in the order in which its callers have begun to wait. All users
// of the name need the option: those without it do not wait in the line. A waiter that dies holds
// up those behind it for up to seven seconds. A try does not overtake waiters.
func WithArrivalOrder() Option {
	return func(o *options) error {
		o.inOrder = true
		return nil
	}
}

// WithOnRenewalError calls f when a renewal has failed. The lease stands, and the renewal is
// repeated, until the lease ends. f is called in a goroutine of the lease, which renews again when
// f has returned.
func WithOnRenewalError(f func(err error)) Option {
	return func(o *options) error {
		if f == nil {
			return errors.New("WithOnRenewalError: the function is nil")
		}
		o.onRenewalError = f
		return nil
	}
}

// WithLogger logs what no caller learns: a release that locks.Do could not confirm, and a panic of
// the function of WithOnRenewalError. By default slog.Default().
func WithLogger(log *slog.Logger) Option {
	return func(o *options) error {
		if log == nil {
			return errors.New("WithLogger: the logger is nil")
		}
		o.log = log
		return nil
	}
}

func optionsOf(opts []Option) (o options, err error) {
	o = options{expiry: DefaultExpiry, log: slog.Default(), providers: globalProviders()}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if failed := opt(&o); failed != nil && err == nil {
			err = fmt.Errorf("%w: %w", errInvalid, failed)
		}
	}
	return o, err
}

// maxName bounds a name.
const maxName = 1024

// checkName refuses names that would not show what they are, and braces: the other keys of a lock
// have the name in braces, so that a cluster keeps them on one server.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", errInvalid)
	case len(name) > maxName:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are allowed", errInvalid, len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: the name %+q has characters that cannot be printed", errInvalid, name)
	case strings.ContainsAny(name, "{}"):
		return fmt.Errorf("%w: the name %q has braces", errInvalid, name)
	}
	return nil
}
