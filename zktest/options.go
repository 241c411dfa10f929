package zktest

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// Option changes a server from its defaults. It returns ErrOption, with the
// value, for one that cannot be used.
type Option func(*zkserver.Config) error

// WithTick sets the server's tick, 2 s by default. Sessions last between 2 and
// 20 ticks unless WithSessionTimeouts says otherwise, and end on a whole tick.
func WithTick(d time.Duration) Option {
	return setDuration("tick", d, func(c *zkserver.Config) { c.Tick = d })
}

// WithSessionTimeouts sets the range of session timeouts that clients may ask
// for, by default 2 to 20 ticks.
func WithSessionTimeouts(least, most time.Duration) Option {
	return func(c *zkserver.Config) error {
		if least < time.Millisecond || most < least {
			return fmt.Errorf("%w: session timeouts from %v to %v", ErrOption, least, most)
		}
		c.MinSessionTimeout, c.MaxSessionTimeout = least, most
		return nil
	}
}

// WithExactExpiry ends sessions exactly their timeout after the last packet,
// and not on the next whole tick as a real server does. Tests that compute
// with times are easier to read so.
func WithExactExpiry() Option {
	return func(c *zkserver.Config) error {
		c.ExactExpiry = true
		return nil
	}
}

// WithContainerInterval sets the time between two searches for empty containers
// and overdue TTL nodes, 1 min by default.
func WithContainerInterval(d time.Duration) Option {
	return setDuration("container interval", d, func(c *zkserver.Config) { c.ReapInterval = d })
}

// WithLogger has the server log expiries and connections that end badly. By
// default it does not log.
func WithLogger(l *slog.Logger) Option {
	return func(c *zkserver.Config) error {
		if l == nil {
			return fmt.Errorf("%w: logger is nil", ErrOption)
		}
		c.Logger = l
		return nil
	}
}

func setDuration(name string, d time.Duration, set func(*zkserver.Config)) Option {
	return func(c *zkserver.Config) error {
		if d < time.Millisecond {
			return fmt.Errorf("%w: %s of %v is less than 1ms", ErrOption, name, d)
		}
		set(c)
		return nil
	}
}
