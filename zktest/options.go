package zktest

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// Option changes a default of a server. Its error wraps framework.ErrInvalid and says which value
// is invalid.
type Option func(*zkserver.Config) error

// WithTick sets the server's tick, 2 s by default. Sessions last between 2 and
// 20 ticks unless WithSessionTimeouts sets other limits, and end on a whole tick.
func WithTick(d time.Duration) Option {
	return setDuration("tick", d, func(c *zkserver.Config) { c.Tick = d })
}

// WithSessionTimeouts sets the range of session timeouts that clients may ask
// for, by default 2 to 20 ticks.
func WithSessionTimeouts(least, most time.Duration) Option {
	return func(c *zkserver.Config) error {
		if least < time.Millisecond || most < least {
			return fmt.Errorf("%w: session timeouts from %v to %v", errOption, least, most)
		}
		c.MinSessionTimeout, c.MaxSessionTimeout = least, most
		return nil
	}
}

// WithExactExpiry ends sessions exactly their timeout after the last packet,
// and not on the next whole tick as a real server does. It makes
// tests that compute with times easier to read.
func WithExactExpiry() Option {
	return func(c *zkserver.Config) error {
		c.ExactExpiry = true
		return nil
	}
}

// WithFollowers has each connection served by a follower, as most are on an ensemble: it answers
// pings by itself, and tells the leader, which keeps the sessions' timers, only each half tick of
// which sessions it has heard. It may forget one packet, never two in a row. By default the server
// is one, and sees every packet at once.
func WithFollowers() Option {
	return func(c *zkserver.Config) error {
		c.Followers = true
		return nil
	}
}

// WithContainerInterval sets the time between two checks for empty containers
// and overdue TTL nodes, 1 min by default.
func WithContainerInterval(d time.Duration) Option {
	return setDuration("container interval", d, func(c *zkserver.Config) { c.ContainerInterval = d })
}

// WithExtendedTypes allows TTL nodes, as a real server does with zookeeper.extendedTypesEnabled.
// Without it the server answers their creation with Unimplemented (-6), as a real server does by
// default.
func WithExtendedTypes() Option {
	return func(c *zkserver.Config) error {
		c.ExtendedTypes = true
		return nil
	}
}

// WithJuteMaxBuffer sets the largest request in bytes, 1,048,575 by default, as jute.maxbuffer does
// on a real server. A client that sends a larger one loses its connection. A session whose
// ephemeral paths have more than twice as many bytes in all cannot be closed: see Server.Err.
func WithJuteMaxBuffer(bytes int) Option {
	return func(c *zkserver.Config) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: jute.maxbuffer of %d bytes", errOption, bytes)
		}
		c.JuteMaxBuffer = bytes
		return nil
	}
}

// WithMaxClientCnxns limits the connections of each address, as maxClientCnxns does on a real
// server, whose default is 60. Here there is no limit by default, since all links have one address.
func WithMaxClientCnxns(n int) Option {
	return func(c *zkserver.Config) error {
		if n <= 0 {
			return fmt.Errorf("%w: %d connections", errOption, n)
		}
		c.MaxClientCnxns = n
		return nil
	}
}

// WithEnforcedQuotas refuses creates and writes above a hard limit of a quota with QuotaExceeded
// (-125), as zookeeper.enforceQuota does on a real server. Without it quotas only count, as on a
// real server by default.
func WithEnforcedQuotas() Option {
	return func(c *zkserver.Config) error {
		c.EnforceQuota = true
		return nil
	}
}

// WithFourLetterWords answers only these four-letter words, and srvr, as 4lw.commands.whitelist
// does on a real server, which answers only srvr by default. Here the default is all words.
func WithFourLetterWords(words ...string) Option {
	return func(c *zkserver.Config) error {
		c.FourLetterWords = append([]string{}, words...)
		return nil
	}
}

// WithSuperDigest defines a user that passes every ACL, as
// zookeeper.DigestAuthenticationProvider.superDigest does on a real server: "super:" and the base64
// of the SHA-1 of "super:password".
func WithSuperDigest(digest string) Option {
	return func(c *zkserver.Config) error {
		if digest == "" {
			return fmt.Errorf("%w: super digest is empty", errOption)
		}
		c.SuperDigest = digest
		return nil
	}
}

// WithLogger sets the log for expired sessions and refused connections. By
// default the server does not log.
func WithLogger(l *slog.Logger) Option {
	return func(c *zkserver.Config) error {
		if l == nil {
			return fmt.Errorf("%w: logger is nil", errOption)
		}
		c.Logger = l
		return nil
	}
}

func setDuration(name string, d time.Duration, set func(*zkserver.Config)) Option {
	return func(c *zkserver.Config) error {
		if d < time.Millisecond {
			return fmt.Errorf("%w: %s of %v is less than 1ms", errOption, name, d)
		}
		set(c)
		return nil
	}
}
