package ensemble

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
)

// signed returns a certificate for these hosts.
func signed(t *testing.T, a *Authority, hosts ...string) tls.Certificate {
	t.Helper()
	cert, key, err := a.Sign("test", hosts...)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return pair
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("test authority")
	require.NoError(t, err)
	return a
}

func TestAuthoritySignsForHosts(t *testing.T) {
	a := newAuthority(t)
	leaf := signed(t, a, "127.0.0.1", "example.org").Leaf
	require.NoError(t, leaf.VerifyHostname("127.0.0.1"))
	require.NoError(t, leaf.VerifyHostname("example.org"))
	require.Error(t, leaf.VerifyHostname("127.0.0.2"))
	require.NoError(t, leaf.CheckSignatureFrom(a.cert))
	require.Error(t, leaf.CheckSignatureFrom(newAuthority(t).cert))
	require.NotEqual(t, leaf.SerialNumber, signed(t, a).Leaf.SerialNumber)
}

// TestSecureServers checks that each server shows a certificate that the authority has signed for
// its address, and requires one from its clients.
func TestSecureServers(t *testing.T) {
	a := newAuthority(t)
	e := Private(t, Config{NoFsync: true, Authority: a})
	require.Len(t, e.SecureAddrs(), 3)
	for _, addr := range e.SecureAddrs() {
		config := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{signed(t, a)}}
		eventually(t, addr, func() bool {
			conn, err := tls.Dial("tcp", addr, config)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		asked := false
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		}
		_, err := tls.Dial("tcp", addr, config)
		require.Error(t, err)
		require.True(t, asked)
	}
}
