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
	EnvServers        = "LOCKSTEP_SERVERS"         // host:port,host:port
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
	c := Config{
		Servers:  SplitServers(os.Getenv(EnvServers)),
		Root:     os.Getenv(EnvRoot),
		Identity: os.Getenv(EnvIdentity),
	}
	var err error
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
