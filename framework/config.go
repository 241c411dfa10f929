package framework

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/stored"
)

// The defaults of Config.
const (
	// defaultSessionTimeout is long enough for a restart or an election of servers to end no hold:
	// docs/timeouts.md.
	defaultSessionTimeout = 30 * time.Second
	defaultDialTimeout    = time.Second
	defaultRetryBase      = 50 * time.Millisecond
	defaultRetryMax       = 5 * time.Second
	defaultFollowSpread   = time.Second
	defaultRoot           = "/"
	// defaultMaxEphemeralBytes is below what a server accepts in one request by default
	// (jute.maxbuffer).
	defaultMaxEphemeralBytes = 900_000
	defaultPort              = "2181"
)

// cleanupsInTimeout says which part of a session timeout a cleanup may wait for the servers: later
// the servers end the session soon anyway.
const cleanupsInTimeout = 3

// Config says how a client connects. The zero value of every field but Servers is usable.
type Config struct {
	// Servers are the addresses of the ensemble, host:port or host (then port 2181). At least one.
	// A name stands for all of its addresses; the client looks it up again after each round in
	// which it has tried all servers. It tries them in random order.
	Servers []string
	// SessionTimeout is T, the timeout that the client asks of the servers. They grant 2 to 20 of
	// their ticks (4 s to 40 s at the usual tick of 2 s), and the client logs a warning if they
	// grant less. Holds survive an interruption of nearly T/2; the servers notice a crash after
	// about T, or at once with WithWatchdog. docs/timeouts.md helps to choose. T should be at least
	// 4 server ticks. Default 30 s.
	SessionTimeout time.Duration
	// ObserverMasters must be true in every client of an ensemble that has observerMasterPort in a
	// server's zoo.cfg. There, observers get their packets from followers, and leases must last T/4
	// less to be safe. A client cannot detect this by itself; see docs/guarantees.md. Default
	// false.
	ObserverMasters bool
	// AlwaysAwake makes sessions prove their life all the time while they are connected, with four
	// writes and syncs in each SessionTimeout. By default a session without holds is dormant: see
	// Session. Set it if your own recipes rely on Session.Context.
	AlwaysAwake bool
	// DialTimeout bounds one attempt to reach one server. Default 1 s.
	DialTimeout time.Duration
	// RetryBase is the first pause after every server has failed once, RetryMax the longest. Pauses
	// double, with random jitter. Defaults 50 ms and 5 s. The pauses between attempts to connect
	// grow to a quarter of SessionTimeout at most.
	RetryBase, RetryMax time.Duration
	// FollowSpread bounds how long Follow waits before it reads a node again, after a reconnect and
	// on a new session. Each client draws a shorter time at random, so that the many clients of a
	// lost server do not all read at once. A quarter of the session timeout is another bound.
	// Default 1 s.
	FollowSpread time.Duration
	// CleanupTimeout bounds how long a cleanup waits for the servers, such as Lease.Release,
	// Term.Resign, Membership.Leave and Client.Close; see Client.CleanupContext. It is at most a
	// third of SessionTimeout, and of the timeout that the servers grant. Default: that third.
	CleanupTimeout time.Duration
	// MaxEphemeralBytes bounds the paths of the ephemeral nodes of one session, in bytes: some
	// 10,000 locks and waiters. A create beyond it fails with ErrTooLarge. The servers delete a
	// session's nodes in one transaction that names them all; if that is larger than they accept
	// (jute.maxbuffer and jute.maxbuffer.extrasize, together 2 MiB by default), the ensemble stops
	// working (ZOOKEEPER-4306). Raise it only together with those settings. Default 900,000.
	MaxEphemeralBytes int
	// Root is the namespace: every path is below it. Default "/".
	Root string
	// Auth is presented to the servers on every connection.
	Auth []Credential
	// ACL is that of the nodes that the client creates, ParentACL that of the directories that
	// MakeDirs and the recipes make. Default: OpenACL without Auth, CreatorOnlyACL with Auth.
	ACL, ParentACL []ACL
	// TLS, when not nil, encrypts the connections. ServerName defaults to each server's host.
	TLS *tls.Config
	// Identity names this client to others, in the data of its nodes, as UTF-8: U+FFFD replaces
	// other bytes. Default host name and pid.
	Identity string
}

// WithDefaults returns a copy in which every empty field has its default.
func (c Config) WithDefaults() Config {
	setDefault(&c.SessionTimeout, defaultSessionTimeout)
	setDefault(&c.DialTimeout, defaultDialTimeout)
	setDefault(&c.RetryBase, defaultRetryBase)
	setDefault(&c.RetryMax, max(defaultRetryMax, c.RetryBase))
	setDefault(&c.FollowSpread, defaultFollowSpread)
	setDefault(&c.CleanupTimeout, c.SessionTimeout/cleanupsInTimeout)
	setDefault(&c.MaxEphemeralBytes, defaultMaxEphemeralBytes)
	setDefault(&c.Root, defaultRoot)
	setDefault(&c.Identity, defaultIdentity())
	c.Identity = stored.Text(c.Identity)
	if c.ACL == nil {
		c.ACL = c.defaultACL()
	}
	if c.ParentACL == nil {
		c.ParentACL = c.defaultACL()
	}
	c.Servers = withPorts(c.Servers)
	return c
}

// Validate returns an error that wraps ErrInvalid and names the first value that cannot be
// used. Empty fields stand for their defaults.
func (c Config) Validate() error {
	if len(c.Servers) == 0 {
		return invalidConfig("no servers given: set Config.Servers, or %s for ConfigFromEnv", EnvServers)
	}
	for _, s := range c.Servers {
		if err := validServer(s); err != nil {
			return err
		}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"SessionTimeout", c.SessionTimeout}, {"DialTimeout", c.DialTimeout}, {"RetryBase", c.RetryBase},
		{"RetryMax", c.RetryMax}, {"FollowSpread", c.FollowSpread},
		{"CleanupTimeout", c.CleanupTimeout}} {
		if d.d < 0 {
			return invalidConfig("%s is %v: it must be positive", d.name, d.d)
		}
	}
	if c.MaxEphemeralBytes < 0 {
		return invalidConfig("MaxEphemeralBytes is %d: it must be positive", c.MaxEphemeralBytes)
	}
	if t := c.SessionTimeout; t != 0 && (t < time.Millisecond || t > math.MaxInt32*time.Millisecond) {
		return invalidConfig("SessionTimeout is %v: it must be between 1ms and %v", t, math.MaxInt32*time.Millisecond)
	}
	if d, most := c.CleanupTimeout, cmp.Or(c.SessionTimeout, defaultSessionTimeout)/cleanupsInTimeout; d > most {
		return invalidConfig("CleanupTimeout is %v: it must be at most %v, a third of SessionTimeout", d, most)
	}
	if d := c.WithDefaults(); d.RetryMax < d.RetryBase {
		return invalidConfig("RetryMax %v is below RetryBase %v", c.RetryMax, c.RetryBase)
	}
	if c.Root != "" {
		if err := ValidatePath(c.Root); err != nil {
			return fmt.Errorf("%w: Root: %w", errInvalidConfig, err)
		}
	}
	for i, a := range c.Auth {
		if a.Scheme == "" {
			return invalidConfig("Auth[%d] has no scheme", i)
		}
	}
	return nil
}

// extraHeartbeats is how many heartbeats before the previous one a lease counts from: see
// sessionLease.
func (c Config) extraHeartbeats() int {
	if c.ObserverMasters {
		return 1
	}
	return 0
}

func (c Config) defaultACL() []ACL {
	if len(c.Auth) > 0 {
		return CreatorOnlyACL()
	}
	return OpenACL()
}

func invalidConfig(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errInvalidConfig}, args...)...)
}

func setDefault[T comparable](field *T, value T) {
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

// validServer refuses a text that is not one address, and says what to write instead.
func validServer(s string) error {
	scheme, _, isURL := strings.Cut(s, "://")
	switch {
	case strings.Contains(s, "@"): // the error does not show s, which may have a password
		return invalidConfig("a server's address has a user's name before the @; give credentials in "+
			"Config.Auth, or by %s", EnvAuthFile)
	case isURL:
		return invalidConfig("server %q begins with %s://; write host:port", s, scheme)
	case strings.Contains(s, ","):
		return invalidConfig("server %q has several addresses; give each one by itself, or the whole text to "+
			"ParseServers", s)
	case strings.Contains(s, "/"):
		host, root, _ := strings.Cut(s, "/")
		return invalidConfig("server %q has a path behind it; write %q and set Root to %q", s, host, "/"+root)
	}
	host, port, err := net.SplitHostPort(withPort(s))
	switch n, notNumber := strconv.Atoi(port); {
	case err != nil:
		return invalidConfig("server %q: %w", s, err)
	case host == "":
		return invalidConfig("server %q has no host; write host:port", s)
	case notNumber != nil || n < 1 || n > 65535:
		return invalidConfig("server %q: port %q is not a number between 1 and 65535", s, port)
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

// Environment variables that ConfigFromEnv reads.
const (
	// host:port,host:port, perhaps with a root behind it: see ParseServers
	EnvServers         = "LOCKSTEP_SERVERS"
	EnvSessionTimeout  = "LOCKSTEP_SESSION_TIMEOUT"  // a duration, such as 10s
	EnvObserverMasters = "LOCKSTEP_OBSERVER_MASTERS" // true if a server has observerMasterPort: Config.ObserverMasters
	EnvRoot            = "LOCKSTEP_ROOT"             // namespace
	EnvIdentity        = "LOCKSTEP_IDENTITY"         // name shown to others
	// a file whose content is user:password (digest); before LOCKSTEP_AUTH
	EnvAuthFile = "LOCKSTEP_AUTH_FILE"
	EnvAuth     = "LOCKSTEP_AUTH"     // user:password (digest); the file form is safer
	EnvTLSCA    = "LOCKSTEP_TLS_CA"   // PEM file; turns TLS on
	EnvTLSCert  = "LOCKSTEP_TLS_CERT" // PEM file of the client's certificate
	EnvTLSKey   = "LOCKSTEP_TLS_KEY"  // PEM file of the client's key
)

// ConfigFromEnv returns a Config from the LOCKSTEP_ variables above. Fields without a variable stay
// empty. A value that cannot be used is an error that wraps ErrInvalid and names the
// variable.
func ConfigFromEnv() (Config, error) { return Config{}.WithEnv() }

// WithEnv returns a copy in which the LOCKSTEP_ variables above that are set replace the fields.
// The credentials and TLS are each replaced as a whole, and Root also by a root behind EnvServers.
// The errors are those of ConfigFromEnv.
func (c Config) WithEnv() (Config, error) {
	if v := os.Getenv(EnvIdentity); v != "" {
		c.Identity = v
	}
	servers, root, err := ParseServers(os.Getenv(EnvServers))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", EnvServers, err)
	}
	if len(servers) > 0 {
		c.Servers = servers
	}
	if v := os.Getenv(EnvRoot); v != "" {
		if root != "" && root != v {
			return Config{}, invalidConfig("%s ends in %s, and %s is %s: give one of them", EnvServers, root,
				EnvRoot, v)
		}
		root = v
	}
	if root != "" {
		c.Root = root
	}
	if v := os.Getenv(EnvSessionTimeout); v != "" {
		if c.SessionTimeout, err = time.ParseDuration(v); err != nil || c.SessionTimeout <= 0 {
			return Config{}, invalidConfig("%s is %q: want a positive duration such as 10s", EnvSessionTimeout, v)
		}
	}
	if v := os.Getenv(EnvObserverMasters); v != "" {
		if c.ObserverMasters, err = strconv.ParseBool(v); err != nil {
			return Config{}, invalidConfig("%s is %q: want true or false", EnvObserverMasters, v)
		}
	}
	if err = c.readAuthFromEnv(); err != nil {
		return Config{}, err
	}
	if err = c.readTLSFromEnv(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// splitServers splits a comma-separated list of servers; blanks and empty parts are dropped.
func splitServers(list string) []string {
	var out []string
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// ParseServers reads a connection string as other ZooKeeper clients take it: host:port,host:port
// with an optional root behind the last address, such as zk1:2181,zk2:2181/app, and an optional
// zk:// or zookeeper:// before it. Ports default to 2181. An empty text has no servers. The root is
// empty when the text has none. The error wraps ErrInvalid and shows the text.
func ParseServers(list string) (servers []string, root string, err error) {
	addresses := strings.TrimSpace(list)
	if strings.Contains(addresses, "@") { // an error that shows list might show a password
		return nil, "", validServer(addresses)
	}
	for _, scheme := range []string{"zk://", "zookeeper://"} {
		addresses = strings.TrimPrefix(addresses, scheme)
	}
	if i := strings.IndexByte(addresses, '/'); i >= 0 && !strings.Contains(addresses, "://") {
		addresses, root = addresses[:i], addresses[i:]
		if strings.Contains(root, ",") {
			return nil, "", invalidConfig("servers %q: write the path once, behind the last address", list)
		}
		if err := ValidatePath(root); err != nil {
			return nil, "", invalidConfig("servers %q: %w", list, err)
		}
	}
	servers = splitServers(addresses)
	if root != "" && len(servers) == 0 {
		return nil, "", invalidConfig("servers %q: there is no address before the path", list)
	}
	for _, s := range servers {
		if err := validServer(s); err != nil {
			return nil, "", err
		}
	}
	if root == "/" {
		root = ""
	}
	return servers, root, nil
}

// readAuthFromEnv takes the credentials from the file, or else from the variable.
func (c *Config) readAuthFromEnv() error {
	if file := os.Getenv(EnvAuthFile); file != "" {
		credential, err := CredentialFromFile("digest", file)
		if err != nil {
			return withVariable(EnvAuthFile, err)
		}
		c.Auth = []Credential{credential}
		return nil
	}
	auth := os.Getenv(EnvAuth)
	if auth == "" {
		return nil
	}
	if !strings.Contains(auth, ":") {
		return invalidConfig("%s: want user:password", EnvAuth)
	}
	c.Auth = []Credential{{Scheme: "digest", Auth: []byte(auth)}}
	return nil
}

// withVariable returns an error of invalidConfig that names the variable which led to it.
func withVariable(variable string, err error) error {
	return invalidConfig("%s: %s", variable, strings.TrimPrefix(err.Error(), errInvalidConfig.Error()+": "))
}

// CredentialFromFile returns a credential whose secret is the content of a file, without blanks
// around it: of the scheme digest, user:password. A file without a secret is an error: without any,
// nodes are open to everybody. New logs a warning if everybody on this machine can read the file.
// The error wraps ErrInvalid and shows no secret.
func CredentialFromFile(scheme, file string) (Credential, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Credential{}, invalidConfig("%w", err)
	}
	credential := Credential{Scheme: scheme, Auth: bytes.TrimSpace(content)}
	const readableByAll = 0o004
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&readableByAll != 0 && runtime.GOOS != "windows" {
		credential.readableFile = file
	}
	switch {
	case len(credential.Auth) == 0:
		return Credential{}, invalidConfig("%s is empty: want user:password", file)
	case scheme == "digest" && !bytes.Contains(credential.Auth, []byte(":")):
		return Credential{}, invalidConfig("%s: want user:password", file)
	}
	return credential, nil
}

func (c *Config) readTLSFromEnv() error {
	ca, cert, key := os.Getenv(EnvTLSCA), os.Getenv(EnvTLSCert), os.Getenv(EnvTLSKey)
	if ca == "" && cert == "" && key == "" {
		return nil
	}
	if ca == "" {
		return invalidConfig("%s or %s is set without %s", EnvTLSCert, EnvTLSKey, EnvTLSCA)
	}
	var err error
	if c.TLS, err = TLSFromFiles(ca, cert, key); err != nil {
		return withVariable(EnvTLSCA+", "+EnvTLSCert+" and "+EnvTLSKey, err)
	}
	return nil
}

// TLSFromFiles returns a configuration for Config.TLS that trusts the certificates of a PEM file,
// and presents the certificate of two others, if they are named. The error wraps ErrInvalid and
// names the file.
func TLSFromFiles(ca, cert, key string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, invalidConfig("%w", err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, invalidConfig("no certificate in %s", ca)
	}
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, invalidConfig("certificate %q and key %q: %w", cert, key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
