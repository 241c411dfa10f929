package framework

import (
	"errors"
	"log/slog"

	"github.com/lockstep-go/lockstep/internal/clock"
)

// Option changes how a client works. It returns an error when its value cannot be used.
type Option func(*options) error

// options is what options set.
type options struct {
	log      *slog.Logger
	clock    clock.Clock
	dial     DialFunc
	dialed   bool // WithDialer was given
	watchdog bool
	tel      *telemetry
}

// WithLogger sets the log for events that no call returns, such as lost sessions and refused
// requests in the background. Default slog.Default. A handler gets the client's own records on a
// goroutine of its own, and holds no mutex of the client: it may ask the client for its Status.
// While a handler blocks, the client goes on; after 1,000 records it drops later ones. Close waits
// until the handler has them all.
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

// WithTimeClock makes the client count its leases by time.Now instead of the system's boot clock:
// for a client in a testing/synctest bubble, which New must be called in. Leases by this clock are
// not safe while the machine is suspended: on most systems it then stands still.
func WithTimeClock() Option { return withClock(clock.Time) }

func withClock(newClock func() clock.Clock) Option {
	return func(o *options) error {
		o.clock = newClock()
		return nil
	}
}

func init() {
	clock.ClientOption = func(c clock.Clock) any { return withClock(func() clock.Clock { return c }) }
}

// WithWatchdog has a crash of this process noticed in milliseconds instead of the session timeout:
// a tiny second process of the same executable, the watchdog, notices the end of this one and
// closes its session.
//
// Guarantee: the watchdog acts only when this process is dead, also by SIGKILL: the kernel ends a
// socket between the two. It follows the client's sessions, is started again when it is killed, and
// ends with Close. It kills the commands of Session.GuardCommand before it closes the session. It
// runs in a Unix session of its own, and inherits only its end of that socket, which no other
// process can open.
//
// Not guaranteed: when the watchdog is killed together with this process (a container, a control
// group, the machine), or is stopped, the session lasts until its timeout, as without the option. A
// process that is stopped is not dead. Writes that this process sent just before its end may arrive
// later than the next holder's: compare tokens.
//
// Unix only: elsewhere, and where no process can be started, the client logs one warning. New fails
// if main has not called WatchdogMain, with WithDialer, since another process cannot make its
// connections, and with a Config.TLS that decides by functions, also by constraints of its pool, or
// whose keys cannot be read.
func WithWatchdog() Option {
	return func(o *options) error {
		if !watchdogMain.Load() {
			return errors.New("WithWatchdog: main has not called framework.WatchdogMain, which must be its first call")
		}
		o.watchdog = true
		return nil
	}
}
