package framework

import (
	"errors"
	"log/slog"
)

// Option changes how a client works. It returns an error when its value cannot be used.
type Option func(*options) error

// options is what options set.
type options struct {
	log      *slog.Logger
	clock    Clock
	dial     DialFunc
	dialed   bool // WithDialer was given
	watchdog bool
	tel      *telemetry
}

// WithLogger makes the client report what it returns to nobody: lost sessions, refused requests in
// the background. Default slog.Default.
func WithLogger(log *slog.Logger) Option {
	return func(o *options) error {
		if log == nil {
			return errors.New("WithLogger: the logger is nil")
		}
		o.log = log
		return nil
	}
}

// WithDialer makes the client open its connections with dial. Config.TLS is not applied to them.
func WithDialer(dial DialFunc) Option {
	return func(o *options) error {
		if dial == nil {
			return errors.New("WithDialer: the dialer is nil")
		}
		o.dial, o.dialed = dial, true
		return nil
	}
}

// WithClock makes the client count its leases by clock. Default SystemClock. In a testing/synctest
// bubble it must be TimeClock, made inside the bubble.
func WithClock(clock Clock) Option {
	return func(o *options) error {
		if clock == nil {
			return errors.New("WithClock: the clock is nil")
		}
		o.clock = clock
		return nil
	}
}

// WithWatchdog has a crash of this process noticed in milliseconds, whatever the session timeout: a tiny second
// process of the same executable sees the end of this one, and closes its session.
//
// Guarantee: the watchdog acts only when this process is dead, also by SIGKILL: the kernel ends a pipe between the
// two. It follows the client's sessions, is started again when it is killed, and does nothing after Close. The
// commands of Session.GuardCommand are dead before the session is closed. The process is in a session of its own,
// and inherits no descriptor but its pipes.
//
// Not guaranteed: the session lasts until its timeout, as without the option, when the watchdog is killed together
// with this process (a container, a control group, the machine), or stopped. A process that is stopped is not
// dead. What it sent just before its end may arrive later than the next holder's writes: compare tokens.
//
// Unix only: elsewhere, and where no process can be started, there is one warning in the log. The error says so
// when main has not called WatchdogMain, with WithDialer, whose connections another process cannot make, and with
// a Config.TLS that decides by functions or whose keys cannot be read.
func WithWatchdog() Option {
	return func(o *options) error {
		if !watchdogMain.Load() {
			return errors.New("WithWatchdog: main has not called framework.WatchdogMain, which must be its first call")
		}
		o.watchdog = true
		return nil
	}
}
