package zkserver

import (
	"cmp"
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
	// Followers puts a follower between each connection and the leader. The leader learns of a
	// session's packets only when the follower answers the leader's next PING, each half tick. The
	// follower reports only every second packet. Server.Follower can cut a follower off from the
	// leader. Without Followers, each packet prolongs its session at once.
	Followers bool
	// ExactExpiry ends a session exactly its timeout after the last packet.
	// Without it the session ends at the next whole tick since the server's
	// start, as on a ZooKeeper server.
	ExactExpiry bool
	// ContainerInterval is the time between two checks for empty containers and
	// expired TTL nodes; 1 min when zero.
	ContainerInterval time.Duration
	// HandshakeTimeout is how long a connection may last without a session;
	// 10 s when zero.
	HandshakeTimeout time.Duration
	// OutgoingLimit is how many bytes may wait for a client that does not read, beside its largest
	// answer, before its connection is cut; 16 MiB when zero.
	OutgoingLimit int
	// JuteMaxBuffer is the largest request in bytes, as the real server's jute.maxbuffer; 0xfffff
	// when zero. A larger request ends its connection. The largest transaction is twice that: see
	// ErrSessionTooLarge.
	JuteMaxBuffer int
	// MaxClientCnxns is how many connections one address may have, as the real server's setting of
	// that name; any number when zero. The server closes a connection above it at once.
	MaxClientCnxns int
	// ExtendedTypes allows TTL nodes, as zookeeper.extendedTypesEnabled does.
	ExtendedTypes bool
	// EnforceQuota refuses writes that exceed a hard limit, as zookeeper.enforceQuota does. Usage
	// is counted either way.
	EnforceQuota bool
	// ReconfigEnabled makes the server answer a reconfiguration with Unimplemented instead of
	// ReconfigDisabled, as a standalone server with that setting does.
	ReconfigEnabled bool
	// FourLetterWords are the allowed commands, "*" for all, as in 4lw.commands.whitelist; srvr is
	// always allowed. All when nil.
	FourLetterWords []string
	// SuperDigest is the super user, who has all permissions, as
	// zookeeper.DigestAuthenticationProvider.superDigest: "super:" and the base64 of the SHA-1 of
	// "super:password". There is none when empty.
	SuperDigest string
	// Logger is the log for expired sessions and refused connections; no log when nil.
	Logger *slog.Logger
}

// The limits of JuteMaxBuffer. The lower limit leaves room for a connect request and a short path.
// A real server does not work above the upper limit, since twice that is the limit of a transaction
// and must fit into an int32.
const minJuteMaxBuffer, maxJuteMaxBuffer = 64, 1 << 29

func (c Config) withDefaults() Config {
	c.Tick = cmp.Or(c.Tick, 2*time.Second)
	c.MinSessionTimeout = cmp.Or(c.MinSessionTimeout, 2*c.Tick)
	c.MaxSessionTimeout = cmp.Or(c.MaxSessionTimeout, 20*c.Tick)
	c.ContainerInterval = cmp.Or(c.ContainerInterval, time.Minute)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
	c.OutgoingLimit = cmp.Or(c.OutgoingLimit, 16<<20)
	c.JuteMaxBuffer = cmp.Or(c.JuteMaxBuffer, wire.MaxFrame)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// validate returns an error that names the first invalid value.
func (c Config) validate() error {
	full := c.withDefaults()
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Tick", full.Tick}, {"MinSessionTimeout", full.MinSessionTimeout},
		{"MaxSessionTimeout", full.MaxSessionTimeout},
		{"ContainerInterval", full.ContainerInterval}, {"HandshakeTimeout", full.HandshakeTimeout},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("zkserver: %s is %v, less than 1ms", d.name, d.value)
		}
	}
	if full.MinSessionTimeout > full.MaxSessionTimeout {
		return fmt.Errorf("zkserver: MinSessionTimeout %v is above MaxSessionTimeout %v", full.MinSessionTimeout,
			full.MaxSessionTimeout)
	}
	switch {
	case full.OutgoingLimit < 0:
		return fmt.Errorf("zkserver: OutgoingLimit %d is negative", full.OutgoingLimit)
	case full.JuteMaxBuffer < minJuteMaxBuffer || full.JuteMaxBuffer > maxJuteMaxBuffer:
		return fmt.Errorf("zkserver: JuteMaxBuffer %d is not between %d and %d", full.JuteMaxBuffer, minJuteMaxBuffer,
			maxJuteMaxBuffer)
	case full.MaxClientCnxns < 0:
		return fmt.Errorf("zkserver: MaxClientCnxns %d is negative", full.MaxClientCnxns)
	case full.SuperDigest != "" && !validDigest(full.SuperDigest):
		return fmt.Errorf("zkserver: SuperDigest %q is not user:digest", full.SuperDigest)
	}
	return nil
}
