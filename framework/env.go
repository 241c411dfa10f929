package framework

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"
)

// Environment variables that ConfigFromEnv reads.
const (
	EnvServers        = "LOCKSTEP_SERVERS"         // host:port,host:port, perhaps with a root behind it: see ParseServers
	EnvSessionTimeout = "LOCKSTEP_SESSION_TIMEOUT" // a duration, such as 10s
	EnvRoot           = "LOCKSTEP_ROOT"            // namespace
	EnvIdentity       = "LOCKSTEP_IDENTITY"        // name shown to others
	EnvAuthFile       = "LOCKSTEP_AUTH_FILE"       // a file whose content is user:password (digest)
	EnvAuth           = "LOCKSTEP_AUTH"            // user:password (digest); the file form is safer
	EnvTLSCA          = "LOCKSTEP_TLS_CA"          // PEM file; turns TLS on
	EnvTLSCert        = "LOCKSTEP_TLS_CERT"        // PEM file of the client's certificate
	EnvTLSKey         = "LOCKSTEP_TLS_KEY"         // PEM file of the client's key
)

// ConfigFromEnv returns a Config from the LOCKSTEP_ variables above. What is not set stays empty;
// what is set and cannot be used is an error that wraps ErrInvalidConfig and names the variable.
func ConfigFromEnv() (Config, error) {
	c := Config{Identity: os.Getenv(EnvIdentity)}
	var err error
	if c.Servers, c.Root, err = ParseServers(os.Getenv(EnvServers)); err != nil {
		return Config{}, fmt.Errorf("%s: %w", EnvServers, err)
	}
	if root := os.Getenv(EnvRoot); root != "" {
		if c.Root != "" && c.Root != root {
			return Config{}, invalid("%s ends in %s, and %s is %s: give one of them", EnvServers, c.Root, EnvRoot, root)
		}
		c.Root = root
	}
	if v := os.Getenv(EnvSessionTimeout); v != "" {
		if c.SessionTimeout, err = time.ParseDuration(v); err != nil || c.SessionTimeout <= 0 {
			return Config{}, invalid("%s is %q: want a positive duration such as 10s", EnvSessionTimeout, v)
		}
	}
	if c.Auth, err = authFromEnv(); err != nil {
		return Config{}, err
	}
	if c.TLS, err = tlsFromEnv(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// SplitServers splits a comma-separated list of servers; blanks and empty parts are dropped.
func SplitServers(list string) []string {
	var out []string
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// ParseServers reads a connection string as other ZooKeeper clients take it: host:port,host:port with an optional root behind
// the last address, such as zk1:2181,zk2:2181/app, and an optional zk:// or zookeeper:// before it. Ports default to 2181. An empty
// text has no servers. The root is empty when there is none. The error wraps ErrInvalidConfig and shows what was given.
func ParseServers(list string) (servers []string, root string, err error) {
	addresses := strings.TrimSpace(list)
	if strings.Contains(addresses, "@") { // not shown: it may have a password
		return nil, "", validServer(addresses)
	}
	for _, scheme := range []string{"zk://", "zookeeper://"} {
		addresses = strings.TrimPrefix(addresses, scheme)
	}
	if i := strings.IndexByte(addresses, '/'); i >= 0 && !strings.Contains(addresses, "://") {
		addresses, root = addresses[:i], addresses[i:]
		if strings.Contains(root, ",") {
			return nil, "", invalid("servers %q: write the path once, behind the last address", list)
		}
		if err := ValidatePath(root); err != nil {
			return nil, "", invalid("servers %q: %w", list, err)
		}
	}
	servers = SplitServers(addresses)
	if root != "" && len(servers) == 0 {
		return nil, "", invalid("servers %q: there is no address before the path", list)
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

func authFromEnv() ([]Credential, error) {
	auth := os.Getenv(EnvAuth)
	if file := os.Getenv(EnvAuthFile); file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, invalid("%s: %w", EnvAuthFile, err)
		}
		auth = strings.TrimSpace(string(b))
	}
	if auth == "" {
		return nil, nil
	}
	if !strings.Contains(auth, ":") {
		return nil, invalid("%s or %s: want user:password", EnvAuth, EnvAuthFile)
	}
	return []Credential{{Scheme: "digest", Auth: []byte(auth)}}, nil
}

func tlsFromEnv() (*tls.Config, error) {
	ca, cert, key := os.Getenv(EnvTLSCA), os.Getenv(EnvTLSCert), os.Getenv(EnvTLSKey)
	if ca == "" {
		if cert != "" || key != "" {
			return nil, invalid("%s or %s is set without %s", EnvTLSCert, EnvTLSKey, EnvTLSCA)
		}
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, invalid("%s: %w", EnvTLSCA, err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, invalid("%s: no certificate in %s", EnvTLSCA, ca)
	}
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s and %s: %w", ErrInvalidConfig, EnvTLSCert, EnvTLSKey, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}
