package zkserver

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
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
	// ContainerInterval is the time between two searches for empty containers and
	// overdue TTL nodes; 1 min when zero.
	ContainerInterval time.Duration
	// HandshakeTimeout is how long a connection may last without a session;
	// 10 s when zero.
	HandshakeTimeout time.Duration
	// OutgoingLimit is how many bytes may wait for a client that does not read
	// before its connection is cut; 16 MiB when zero.
	OutgoingLimit int
	// JuteMaxBuffer is the largest request in bytes, as the real server's jute.maxbuffer; 0xfffff when
	// zero. A larger one ends its connection. Twice as much is the largest transaction: see ErrSessionTooLarge.
	JuteMaxBuffer int
	// MaxClientCnxns is how many connections one address may have, as the real server's setting of that
	// name; any number when zero. A connection above it is closed at once.
	MaxClientCnxns int
	// ExtendedTypes admits TTL nodes, as zookeeper.extendedTypesEnabled does.
	ExtendedTypes bool
	// EnforceQuota refuses what exceeds a hard limit, as zookeeper.enforceQuota does. Usage is counted either way.
	EnforceQuota bool
	// ReconfigEnabled has reconfigurations answered as a standalone server does with that setting: Unimplemented
	// instead of ReconfigDisabled.
	ReconfigEnabled bool
	// FourLetterWords are the commands that are answered, "*" for all, as 4lw.commands.whitelist; srvr is always
	// among them. All when nil.
	FourLetterWords []string
	// SuperDigest is the user that no ACL keeps out, as zookeeper.DigestAuthenticationProvider.superDigest:
	// "super:" and the base64 of the SHA-1 of "super:password". Nobody when empty.
	SuperDigest string
	// Logger is told of sessions and connections that end badly; none when nil.
	Logger *slog.Logger
}

// A connect request and a few bytes of path are what any client sends; more than the upper bound is no setting that a
// real server works with, and the transaction limit is twice as much in an int32.
const leastJuteMaxBuffer, mostJuteMaxBuffer = 64, 1 << 29

func (c Config) withDefaults() Config {
	c.Tick = orDefault(c.Tick, 2*time.Second)
	c.MinSessionTimeout = orDefault(c.MinSessionTimeout, 2*c.Tick)
	c.MaxSessionTimeout = orDefault(c.MaxSessionTimeout, 20*c.Tick)
	c.ContainerInterval = orDefault(c.ContainerInterval, time.Minute)
	c.HandshakeTimeout = orDefault(c.HandshakeTimeout, 10*time.Second)
	c.OutgoingLimit = orDefault(c.OutgoingLimit, 16<<20)
	c.JuteMaxBuffer = orDefault(c.JuteMaxBuffer, wire.MaxFrame)
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

// validate returns an error that names the first value which cannot be used.
func (c Config) validate() error {
	full := c.withDefaults()
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Tick", full.Tick}, {"MinSessionTimeout", full.MinSessionTimeout}, {"MaxSessionTimeout", full.MaxSessionTimeout},
		{"ContainerInterval", full.ContainerInterval}, {"HandshakeTimeout", full.HandshakeTimeout},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("zkserver: %s is %v, less than 1ms", d.name, d.value)
		}
	}
	if full.MinSessionTimeout > full.MaxSessionTimeout {
		return fmt.Errorf("zkserver: MinSessionTimeout %v is above MaxSessionTimeout %v", full.MinSessionTimeout, full.MaxSessionTimeout)
	}
	switch {
	case full.OutgoingLimit < 0:
		return fmt.Errorf("zkserver: OutgoingLimit %d is negative", full.OutgoingLimit)
	case full.JuteMaxBuffer < leastJuteMaxBuffer || full.JuteMaxBuffer > mostJuteMaxBuffer:
		return fmt.Errorf("zkserver: JuteMaxBuffer %d is not between %d and %d", full.JuteMaxBuffer, leastJuteMaxBuffer, mostJuteMaxBuffer)
	case full.MaxClientCnxns < 0:
		return fmt.Errorf("zkserver: MaxClientCnxns %d is negative", full.MaxClientCnxns)
	case full.SuperDigest != "" && !validDigest(full.SuperDigest):
		return fmt.Errorf("zkserver: SuperDigest %q is not user:digest", full.SuperDigest)
	}
	return nil
}
