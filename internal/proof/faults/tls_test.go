package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// tlsServer is a real server that requires client certificates, and its certificate authority.
type tlsServer struct {
	*testEnv
	authority *ensemble.Authority
}

// TestClientCertificates connects to a real server that requires client certificates.
func TestClientCertificates(t *testing.T) {
	s := newTLSServer(t)
	t.Run("right", func(t *testing.T) { t.Parallel(); testRightCertificate(t, s) })
	t.Run("identity", func(t *testing.T) { t.Parallel(); testCertificateIsIdentity(t, s) })
	t.Run("refused", func(t *testing.T) { t.Parallel(); testWrongCertificates(t, s) })
}

func newTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	authority := newAuthority(t)
	return &tlsServer{authority: authority, testEnv: &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{
		Servers: 1, Tick: 2 * time.Second, NoFsync: true, Patience: waitLimit, HeapMB: 512, Authority: authority,
	})}}
}

func newAuthority(t *testing.T) *ensemble.Authority {
	t.Helper()
	authority, err := ensemble.NewAuthority("test authority")
	require.NoError(t, err)
	return authority
}

// certificate returns a client certificate with this name.
func certificate(t *testing.T, authority *ensemble.Authority, name string) tls.Certificate {
	t.Helper()
	cert, key, err := authority.Sign(name)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return pair
}

// clientConfig returns the right configuration, for the server or a proxy to it.
func (s *tlsServer) clientConfig(t *testing.T, addr string) framework.Config {
	t.Helper()
	cfg := config(addr)
	cfg.Auth = credentials
	cfg.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: s.authority.Pool(),
		Certificates: []tls.Certificate{certificate(t, s.authority, "client")},
	}
	return cfg
}

// testRightCertificate checks that a client with the right certificate can lock, that it keeps its
// session when its connection is reset, and that it has the identity of its credentials.
func testRightCertificate(t *testing.T, s *tlsServer) {
	proxy, err := ensemble.NewProxy(s.SecureAddr(0))
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	cfg := s.clientConfig(t, proxy.Addr())
	cfg.SessionTimeout = 40 * time.Second // on a loaded machine a short one may end beside the reset
	c := mustConnect(t, cfg)
	lease, err := locks.NewMutex(c, "/tls/lock").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), "/tls-secret", []byte("secret"), framework.Persistent))
	before, err := c.Session(t.Context())
	require.NoError(t, err)

	proxy.Reset()
	_, _, err = c.Get(t.Context(), "/tls-secret") // over a new connection
	require.NoError(t, err)
	after, err := c.Session(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.ID(), after.ID())
	require.NoError(t, lease.Err())
	require.NoError(t, lease.Release(t.Context()))

	plain := config(s.Addr(0))
	_, _, err = mustConnect(t, plain).Get(t.Context(), "/tls-secret")
	require.ErrorIs(t, err, framework.ErrNoAuth)
	plain.Auth = credentials
	_, _, err = mustConnect(t, plain).Get(t.Context(), "/tls-secret")
	require.NoError(t, err, "credentials give access without TLS too")
	certified := s.clientConfig(t, s.SecureAddr(0))
	certified.Auth = nil
	_, _, err = mustConnect(t, certified).Get(t.Context(), "/tls-secret")
	require.NoError(t, err, "the creator's certificate gives access without its credentials")
}

// testCertificateIsIdentity checks that the server uses the certificate's subject as an identity if
// the ACL asks for it, and not by default, as SECURITY.md says.
func testCertificateIsIdentity(t *testing.T, s *tlsServer) {
	as := func(name string, acl []framework.ACL) *framework.Client {
		cfg := s.clientConfig(t, s.SecureAddr(0))
		cfg.Auth, cfg.ACL = nil, acl
		cfg.TLS.Certificates = []tls.Certificate{certificate(t, s.authority, name)}
		return mustConnect(t, cfg)
	}
	require.NoError(t, as("ann", framework.CreatorOnlyACL()).Create(t.Context(), "/only-ann", nil,
		framework.Persistent))
	require.NoError(t, as("ann", nil).Create(t.Context(), "/unrestricted", nil, framework.Persistent))
	for name, want := range map[string]error{"ann": nil, "bob": framework.ErrNoAuth} {
		_, _, err := as(name, nil).Get(t.Context(), "/only-ann")
		require.ErrorIs(t, err, want)
		_, _, err = as(name, nil).Get(t.Context(), "/unrestricted")
		require.NoError(t, err)
	}
}

// testWrongCertificates checks that each refusal is logged when it happens, and returned when the
// caller gives up.
func testWrongCertificates(t *testing.T, s *tlsServer) {
	for name, c := range map[string]struct {
		spoil func(*framework.Config)
		says  string
	}{
		"server of another authority": {func(c *framework.Config) { c.TLS.RootCAs = newAuthority(t).Pool() },
			"unknown authority"},
		"server of another name": {func(c *framework.Config) { c.TLS.ServerName = "elsewhere.example" },
			"elsewhere.example"},
		"no client certificate": {func(c *framework.Config) { c.TLS.Certificates = nil },
			"remote error: tls: bad certificate"},
		"client of another authority": {func(c *framework.Config) {
			c.TLS.Certificates = []tls.Certificate{certificate(t, newAuthority(t), "client")}
		}, "remote error: tls:"},
		"no TLS": {func(c *framework.Config) { c.TLS = nil }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := s.clientConfig(t, s.SecureAddr(0))
			c.spoil(&cfg)
			log := newLogMatcher(c.says)
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			stop := context.AfterFunc(log, cancel) // the reason was logged: no need to wait longer
			defer stop()
			got, err := framework.Connect(ctx, cfg,
				framework.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			require.Nil(t, got)
			require.ErrorContains(t, err, c.says)
			require.ErrorIs(t, err, context.Canceled, "the log has no such refusal:\n%s", log)
			require.ErrorAs(t, err, new(*framework.ConnectError))
		})
	}
}

// logMatcher is a log, and a context that ends when the log contains a pattern.
type logMatcher struct {
	context.Context
	matched context.CancelFunc
	pattern []byte

	mu   sync.Mutex
	text bytes.Buffer
}

func newLogMatcher(word string) *logMatcher {
	m := &logMatcher{pattern: []byte(word)}
	m.Context, m.matched = context.WithCancel(context.Background())
	return m
}

func (m *logMatcher) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes.Contains(line, m.pattern) {
		m.matched()
	}
	return m.text.Write(line)
}

func (m *logMatcher) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}
