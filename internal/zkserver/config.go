package zkserver

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Config holds a Server's settings. The zero value has the defaults of a ZooKeeper
// server.
type Config struct {
	// Tick is the unit of session expiry; 2 s when zero.
	Tick time.Duration
	// MinSessionTimeout and MaxSessionTimeout limit the timeouts that clients may request;
	// 2 and 20 ticks when zero.
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	// Followers has each connection served by a follower, which tells the leader only of the session's packets with its answer to the leader's next PING,
	// each half tick, and of no two packets in a row for sure. HoldFollower cuts it off. Without it the leader sees every packet.
	Followers bool
	// ExactExpiry ends a session exactly its timeout after the last packet.
	// Without it the session ends at the next whole tick since the server's
	// start, as on a ZooKeeper server.
	ExactExpiry bool
	// ContainerInterval is the time between two checks for empty containers and
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
	// ExtendedTypes allows TTL nodes, as zookeeper.extendedTypesEnabled does.
	ExtendedTypes bool
	// EnforceQuota refuses writes that exceed a hard limit, as zookeeper.enforceQuota does. Usage is counted either way.
	EnforceQuota bool
	// ReconfigEnabled makes the answer to a reconfiguration Unimplemented instead of ReconfigDisabled, as on a standalone server
	// with that setting.
	ReconfigEnabled bool
	// FourLetterWords are the allowed commands, "*" for all, as in 4lw.commands.whitelist; srvr is always
	// allowed. All when nil.
	FourLetterWords []string
	// SuperDigest is the user that passes every ACL, as zookeeper.DigestAuthenticationProvider.superDigest:
	// "super:" and the base64 of the SHA-1 of "super:password". No user when empty.
	SuperDigest string
	// Logger gets expired sessions and refused connections; no log when nil.
	Logger *slog.Logger
}

// The limits of JuteMaxBuffer. Each client sends a connect request and a few bytes of path. A real server does not work with more than the
// upper limit: the limit of a transaction is twice as much and must fit into an int32.
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

// validate returns an error that names the first invalid value.
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
