package framework

import (
	"errors"
	"log/slog"

	"github.com/lockstep-go/lockstep/internal/link"
)

// Option changes how a client works. It returns an error when its value cannot be used.
type Option func(*Client) error

// DialFunc opens a connection to a server, as net.Dialer.DialContext does.
type DialFunc = link.DialFunc

// WithLogger makes the client report what it returns to nobody: lost sessions, refused requests in
// the background. Default slog.Default.
func WithLogger(log *slog.Logger) Option {
	return func(c *Client) error {
		if log == nil {
			return errors.New("WithLogger: the logger is nil")
		}
		c.log = log
		return nil
	}
}

// WithDialer makes the client open its connections with dial. Config.TLS is not applied to them.
func WithDialer(dial DialFunc) Option {
	return func(c *Client) error {
		if dial == nil {
			return errors.New("WithDialer: the dialer is nil")
		}
		c.dial, c.dialed = dial, true
		return nil
	}
}

// WithClock makes the client count its leases by clock. Default SystemClock. In a testing/synctest
// bubble it must be TimeClock, made inside the bubble.
func WithClock(clock Clock) Option {
	return func(c *Client) error {
		if clock == nil {
			return errors.New("WithClock: the clock is nil")
		}
		c.clock = clock
		return nil
	}
}
