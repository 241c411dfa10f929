package framework

import (
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultSessionTimeout = 10 * time.Second
	DefaultDialTimeout    = time.Second
	DefaultRetryBase      = 50 * time.Millisecond
	DefaultRetryMax       = 5 * time.Second
	DefaultRoot           = "/"
	// DefaultMaxEphemeralBytes is below what a server accepts in one request by default (jute.maxbuffer).
	DefaultMaxEphemeralBytes = 900_000
	defaultPort              = "2181"
)

// Config says how a client connects. The zero value of every field but Servers is usable.
type Config struct {
	// Servers are the addresses of the ensemble, host:port or host (then port 2181). At least one. A name stands for all addresses that it has, and is looked up
	// again each time that all were tried. They are tried in random order; none is preferred.
	Servers []string
	// SessionTimeout is T, what the client asks of the servers; they may grant another. A crash is
	// noticed after about T. At least 4 server ticks are wanted (8 s at the usual tick of 2 s).
	// Default 10 s.
	SessionTimeout time.Duration
	// DialTimeout bounds one attempt to reach one server. Default 1 s.
	DialTimeout time.Duration
	// RetryBase is the first pause after every server has failed once, RetryMax the longest; pauses
	// double and are drawn at random around that. Defaults 50 ms and 5 s.
	RetryBase, RetryMax time.Duration
	// MaxEphemeralBytes bounds the paths of the ephemeral nodes of one session, in bytes: some 10,000 locks and waiters. A create beyond it fails with
	// ErrTooLarge. The servers delete a session's nodes in one transaction that names them all; if that is larger than they accept (jute.maxbuffer and
	// jute.maxbuffer.extrasize, together 2 MiB by default), the ensemble stops working (ZOOKEEPER-4306). Raise it only with those. Default 900,000.
	MaxEphemeralBytes int
	// Root is the namespace: every path is below it. Default "/".
	Root string
	// Auth is presented to the servers on every connection.
	Auth []Credential
	// ACL is given to nodes that the client creates, ParentACL to the directories above them.
	// Default: Open without Auth, CreatorOnly with Auth.
	ACL, ParentACL []ACL
	// TLS, when not nil, encrypts the connections. ServerName defaults to each server's host.
	TLS *tls.Config
	// Identity names this client to others, in the data of its nodes. Default host name and pid.
	Identity string
}

// WithDefaults returns a copy in which every empty field has its default.
func (c Config) WithDefaults() Config {
	set(&c.SessionTimeout, DefaultSessionTimeout)
	set(&c.DialTimeout, DefaultDialTimeout)
	set(&c.RetryBase, DefaultRetryBase)
	set(&c.RetryMax, max(DefaultRetryMax, c.RetryBase))
	set(&c.MaxEphemeralBytes, DefaultMaxEphemeralBytes)
	set(&c.Root, DefaultRoot)
	set(&c.Identity, defaultIdentity())
	if c.ACL == nil {
		c.ACL = c.defaultACL()
	}
	if c.ParentACL == nil {
		c.ParentACL = c.defaultACL()
	}
	c.Servers = withPorts(c.Servers)
	return c
}

// Validate returns an error that wraps ErrInvalidConfig and names the first value that cannot be
// used. Empty fields stand for their defaults.
func (c Config) Validate() error {
	if len(c.Servers) == 0 {
		return invalid("no servers given")
	}
	for _, s := range c.Servers {
		if err := validServer(s); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"SessionTimeout", c.SessionTimeout}, {"DialTimeout", c.DialTimeout}, {"RetryBase", c.RetryBase}, {"RetryMax", c.RetryMax}} {
		if d.d < 0 {
			return invalid("%s is %v: it must be positive", d.name, d.d)
		}
	}
	if c.MaxEphemeralBytes < 0 {
		return invalid("MaxEphemeralBytes is %d: it must be positive", c.MaxEphemeralBytes)
	}
	if t := c.SessionTimeout; t != 0 && (t < time.Millisecond || t > math.MaxInt32*time.Millisecond) {
		return invalid("SessionTimeout is %v: it must be between 1ms and %v", t, math.MaxInt32*time.Millisecond)
	}
	if d := c.WithDefaults(); d.RetryMax < d.RetryBase {
		return invalid("RetryMax %v is below RetryBase %v", c.RetryMax, c.RetryBase)
	}
	if c.Root != "" {
		if err := ValidatePath(c.Root); err != nil {
			return fmt.Errorf("%w: Root: %w", ErrInvalidConfig, err)
		}
	}
	for i, a := range c.Auth {
		if a.Scheme == "" {
			return invalid("Auth[%d] has no scheme", i)
		}
	}
	return nil
}

func (c Config) defaultACL() []ACL {
	if len(c.Auth) > 0 {
		return CreatorOnly()
	}
	return Open()
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalidConfig}, args...)...)
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + strconv.Itoa(os.Getpid())
}

// validServer refuses what is not one address, and says what to do with it instead.
func validServer(s string) error {
	scheme, _, isURL := strings.Cut(s, "://")
	switch {
	case strings.Contains(s, "@"): // not shown: it may have a password
		return invalid("a server's address has a user's name before the @; give credentials in Config.Auth, or by %s", EnvAuthFile)
	case isURL:
		return invalid("server %q begins with %s://; write host:port", s, scheme)
	case strings.Contains(s, ","):
		return invalid("server %q has several addresses; give each one for itself, or the whole text to ParseServers", s)
	case strings.Contains(s, "/"):
		host, root, _ := strings.Cut(s, "/")
		return invalid("server %q has a path behind it; write %q and set Root to %q", s, host, "/"+root)
	}
	host, port, err := net.SplitHostPort(withPort(s))
	switch n, notNumber := strconv.Atoi(port); {
	case err != nil:
		return invalid("server %q: %w", s, err)
	case host == "":
		return invalid("server %q has no host; write host:port", s)
	case notNumber != nil || n < 1 || n > 65535:
		return invalid("server %q: port %q is not a number between 1 and 65535", s, port)
	}
	return nil
}

func withPorts(servers []string) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = withPort(s)
	}
	return out
}

func withPort(s string) string {
	if _, _, err := net.SplitHostPort(s); err == nil {
		return s
	}
	if ip := net.ParseIP(s); ip != nil {
		return net.JoinHostPort(s, defaultPort)
	}
	return s + ":" + defaultPort
}
