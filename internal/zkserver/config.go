package zkserver

import (
	"fmt"
	"log/slog"
	"time"
)

// Config says how a Server behaves. The zero value is that of a ZooKeeper
// server with default settings.
type Config struct {
	// Tick is the unit of session expiry; 2 s when zero.
	Tick time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what clients may ask for;
	// 2 and 20 ticks when zero.
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	// ExactExpiry ends a session exactly its timeout after the last packet.
	// Otherwise the end is put off to the next whole tick since the server's
	// start, as a ZooKeeper server does; it never comes early.
	ExactExpiry bool
	// ReapInterval is the time between two searches for empty containers and
	// overdue TTL nodes; 1 min when zero.
	ReapInterval time.Duration
	// HandshakeTimeout is how long a connection may last without a session;
	// 10 s when zero.
	HandshakeTimeout time.Duration
	// OutgoingLimit is how many bytes may wait for a client that does not read
	// before its connection is cut; 16 MiB when zero.
	OutgoingLimit int
	// Logger is told of sessions and connections that end badly; none when nil.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Tick = orDefault(c.Tick, 2*time.Second)
	c.MinSessionTimeout = orDefault(c.MinSessionTimeout, 2*c.Tick)
	c.MaxSessionTimeout = orDefault(c.MaxSessionTimeout, 20*c.Tick)
	c.ReapInterval = orDefault(c.ReapInterval, time.Minute)
	c.HandshakeTimeout = orDefault(c.HandshakeTimeout, 10*time.Second)
	c.OutgoingLimit = orDefault(c.OutgoingLimit, 16<<20)
	c.Logger = orDefault(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Validate returns an error that names the first value which cannot be used.
func (c Config) Validate() error {
	full := c.withDefaults()
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Tick", full.Tick}, {"MinSessionTimeout", full.MinSessionTimeout}, {"MaxSessionTimeout", full.MaxSessionTimeout},
		{"ReapInterval", full.ReapInterval}, {"HandshakeTimeout", full.HandshakeTimeout},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("zkserver: %s is %v, less than 1ms", d.name, d.value)
		}
	}
	if full.MinSessionTimeout > full.MaxSessionTimeout {
		return fmt.Errorf("zkserver: MinSessionTimeout %v is above MaxSessionTimeout %v", full.MinSessionTimeout, full.MaxSessionTimeout)
	}
	if full.OutgoingLimit < 0 {
		return fmt.Errorf("zkserver: OutgoingLimit %d is negative", full.OutgoingLimit)
	}
	return nil
}
