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
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// secured is a real server that wants client certificates, and who signs them.
type secured struct {
	*arena
	authority *ensemble.Authority
}

// TestTLS connects to a real server that wants client certificates.
func TestTLS(t *testing.T) {
	s := newSecured(t)
	t.Run("right", func(t *testing.T) { t.Parallel(); testRightCertificate(t, s) })
	t.Run("identity", func(t *testing.T) { t.Parallel(); testCertificateIsIdentity(t, s) })
	t.Run("refused", func(t *testing.T) { t.Parallel(); testWrongCertificates(t, s) })
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	a := newAuthority(t)
	return &secured{authority: a, arena: &arena{ensemble.Private(t, ensemble.Config{
		Servers: 1, Tick: 2 * time.Second, NoFsync: true, Patience: patience, HeapMB: 512, Authority: a,
	})}}
}

func newAuthority(t *testing.T) *ensemble.Authority {
	t.Helper()
	a, err := ensemble.NewAuthority("test authority")
	require.NoError(t, err)
	return a
}

// certificate is one for a client of this name.
func certificate(t *testing.T, a *ensemble.Authority, name string) tls.Certificate {
	t.Helper()
	cert, key, err := a.Sign(name)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return pair
}

// config is the right one, to the server or what stands before it.
func (s *secured) config(t *testing.T, addr string) framework.Config {
	t.Helper()
	cfg := config(addr)
	cfg.Auth = credentials
	cfg.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: s.authority.Pool(),
		Certificates: []tls.Certificate{certificate(t, s.authority, "client")},
	}
	return cfg
}

// testRightCertificate locks, goes on with the same session after its connection was cut, and is told from others
// by its credentials.
func testRightCertificate(t *testing.T, s *secured) {
	proxy, err := ensemble.NewProxy(s.SecureAddr(0))
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	c := client(t, s.config(t, proxy.Addr()))
	lease, err := locks.NewMutex(c, "/tls/lock").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), "/tls-secret", []byte("secret"), framework.Persistent))
	before, err := c.Session(t.Context())
	require.NoError(t, err)

	proxy.Reset()
	_, _, err = c.Get(t.Context(), "/tls-secret") // over another connection
	require.NoError(t, err)
	after, err := c.Session(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.ID(), after.ID())
	require.NoError(t, lease.Err())
	require.NoError(t, lease.Release(t.Context()))

	plain := config(s.Addr(0))
	_, _, err = client(t, plain).Get(t.Context(), "/tls-secret")
	require.ErrorIs(t, err, framework.ErrNoAuth)
	plain.Auth = credentials
	_, _, err = client(t, plain).Get(t.Context(), "/tls-secret")
	require.NoError(t, err, "the same credentials count without TLS too")
	certified := s.config(t, s.SecureAddr(0))
	certified.Auth = nil
	_, _, err = client(t, certified).Get(t.Context(), "/tls-secret")
	require.NoError(t, err, "the creator is whoever has its credentials or its certificate's name")
}

// testCertificateIsIdentity shows what SECURITY.md says of certificates: the server takes their subject for an
// identity, which counts if the ACL asks for it, and is not asked for by default.
func testCertificateIsIdentity(t *testing.T, s *secured) {
	as := func(name string, acl []framework.ACL) *framework.Client {
		cfg := s.config(t, s.SecureAddr(0))
		cfg.Auth, cfg.ACL = nil, acl
		cfg.TLS.Certificates = []tls.Certificate{certificate(t, s.authority, name)}
		return client(t, cfg)
	}
	require.NoError(t, as("ann", framework.CreatorOnly()).Create(t.Context(), "/anns", nil, framework.Persistent))
	require.NoError(t, as("ann", nil).Create(t.Context(), "/anybodys", nil, framework.Persistent))
	for name, want := range map[string]error{"ann": nil, "bob": framework.ErrNoAuth} {
		_, _, err := as(name, nil).Get(t.Context(), "/anns")
		require.ErrorIs(t, err, want)
		_, _, err = as(name, nil).Get(t.Context(), "/anybodys")
		require.NoError(t, err)
	}
}

// testWrongCertificates sees each refusal in the log as it happens, and in the error when the caller gives up.
func testWrongCertificates(t *testing.T, s *secured) {
	for name, c := range map[string]struct {
		spoil func(*framework.Config)
		says  string
	}{
		"server of another authority": {func(c *framework.Config) { c.TLS.RootCAs = newAuthority(t).Pool() }, "unknown authority"},
		"server of another name":      {func(c *framework.Config) { c.TLS.ServerName = "elsewhere.example" }, "elsewhere.example"},
		"no client certificate":       {func(c *framework.Config) { c.TLS.Certificates = nil }, "remote error: tls: bad certificate"},
		"client of another authority": {func(c *framework.Config) {
			c.TLS.Certificates = []tls.Certificate{certificate(t, newAuthority(t), "client")}
		}, "remote error: tls:"},
		"no TLS": {func(c *framework.Config) { c.TLS = nil }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := s.config(t, s.SecureAddr(0))
			c.spoil(&cfg)
			told := newEar(c.says)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			stop := context.AfterFunc(told, cancel) // it is known why: nothing more to wait for
			defer stop()
			got, err := framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			require.Nil(t, got)
			require.ErrorContains(t, err, c.says)
			require.ErrorIs(t, err, context.Canceled, "the log did not tell:\n%s", told)
			require.ErrorAs(t, err, new(*framework.ConnectError))
		})
	}
}

// ear is a log, and a context that is done once the log has said a word.
type ear struct {
	context.Context
	hear context.CancelFunc
	word []byte

	mu   sync.Mutex
	text bytes.Buffer
}

func newEar(word string) *ear {
	e := &ear{word: []byte(word)}
	e.Context, e.hear = context.WithCancel(context.Background())
	return e
}

func (e *ear) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if bytes.Contains(line, e.word) {
		e.hear()
	}
	return e.text.Write(line)
}

func (e *ear) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.String()
}
