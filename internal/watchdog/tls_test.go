package watchdog

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newCertificate returns a certificate for 127.0.0.1. parent signs it. If parent is nil, it is an
// authority and signs itself.
func newCertificate(t *testing.T, parent *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, by := template, crypto.PrivateKey(key)
	if parent != nil {
		signer, by = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, by)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func newCertPool(c tls.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c.Leaf)
	return p
}

// serveTLS runs a server that requires a client's certificate of the authority ca and sends
// "hello".
func serveTLS(t *testing.T, ca, own tls.Certificate) string {
	return serveConnections(t, func(conn net.Conn) {
		secured := tls.Server(conn, &tls.Config{
			Certificates: []tls.Certificate{own}, ClientCAs: newCertPool(ca),
			ClientAuth: tls.RequireAndVerifyClientCert,
		})
		_, _ = secured.Write([]byte("hello"))
		_ = secured.CloseWrite()
	})
}

func TestTLSIsExported(t *testing.T) {
	ca, other := newCertificate(t, nil), newCertificate(t, nil)
	addr, untrusted := serveTLS(t, ca, newCertificate(t, &ca)), serveTLS(t, ca, newCertificate(t, &other))
	config := &tls.Config{RootCAs: newCertPool(ca), Certificates: []tls.Certificate{newCertificate(t, &ca)},
		MinVersion: tls.VersionTLS13}
	exported, err := ExportTLS(config)
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", addr, config)
	require.NoError(t, err)
	exported.Roots = VerifiedRoots(conn.ConnectionState())
	conn.Close()

	m, err := decodeMessage(
		encodeFrame(Access{Servers: []string{addr}, DialTimeout: 10 * time.Second, TLS: exported})[4:])
	require.NoError(t, err)
	a := m.(Access)
	secured, err := a.dialServer(t.Context(), addr)
	require.NoError(t, err)
	defer secured.Close()
	text, err := io.ReadAll(secured)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))

	_, err = a.dialServer(t.Context(), untrusted)
	require.ErrorContains(t, err, "unknown authority")
	a.TLS.Roots = nil
	_, err = a.dialServer(t.Context(), addr)
	require.ErrorContains(t, err, "unknown authority", "the system's authorities are not trusted either")
}

// opaqueSigner is a private key that cannot be exported.
type opaqueSigner struct{ crypto.Signer }

func TestUnexportableTLSIsRefused(t *testing.T) {
	none, err := ExportTLS(nil)
	require.NoError(t, err)
	require.Nil(t, none)
	hidden := newCertificate(t, nil)
	hidden.PrivateKey = opaqueSigner{hidden.PrivateKey.(crypto.Signer)}
	constrained, ca := x509.NewCertPool(), newCertificate(t, nil)
	constrained.AddCert(newCertificate(t, nil).Leaf)
	constrained.AddCertWithConstraint(ca.Leaf, func([]*x509.Certificate) error { return nil })
	for _, c := range []struct {
		config *tls.Config
		want   error
	}{
		{&tls.Config{Certificates: []tls.Certificate{hidden}}, errTLSKey},
		{&tls.Config{VerifyConnection: func(tls.ConnectionState) error { return nil }}, errTLSFunctions},
		{&tls.Config{Time: time.Now}, errTLSFunctions},
		{&tls.Config{EncryptedClientHelloRejectionVerify: func(tls.ConnectionState) error { return nil }},
			errTLSFunctions},
		{&tls.Config{RootCAs: constrained}, errTLSPool},
	} {
		_, err := ExportTLS(c.config)
		require.ErrorIs(t, err, c.want)
	}
	for _, pool := range []*x509.CertPool{nil, x509.NewCertPool(), newCertPool(ca)} {
		_, err := ExportTLS(&tls.Config{RootCAs: pool})
		require.NoError(t, err)
	}
}

// TestEachFieldOfTLSIsDecidedOn: a field that a client heeds is exported, or refused. The others
// are a server's, or decide nothing about the connection.
func TestEachFieldOfTLSIsDecidedOn(t *testing.T) {
	given := &tls.Config{
		ServerName: "n", InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13,
		CipherSuites:     []uint16{tls.TLS_AES_128_GCM_SHA256},
		CurvePreferences: []tls.CurveID{tls.X25519}, NextProtos: []string{"p"},
		Renegotiation: tls.RenegotiateOnceAsClient, EncryptedClientHelloConfigList: []byte{1},
		Certificates: []tls.Certificate{newCertificate(t, nil)},
	}
	exported, err := ExportTLS(given)
	require.NoError(t, err)
	m, err := decodeMessage(encodeFrame(Access{TLS: exported})[4:])
	require.NoError(t, err)
	got, err := m.(Access).TLS.clientConfig("host")
	require.NoError(t, err)
	others := []string{
		// tests above
		"RootCAs", "Time", "VerifyPeerCertificate", "VerifyConnection", "GetClientCertificate",
		"EncryptedClientHelloRejectionVerify",
		"Rand", "ClientSessionCache", "SessionTicketsDisabled", "DynamicRecordSizingDisabled", "KeyLogWriter",
		"PreferServerCipherSuites",
		"NameToCertificate", "GetCertificate", "GetConfigForClient", "ClientAuth", "ClientCAs", "SessionTicketKey",
		"UnwrapSession", "WrapSession",
		"GetEncryptedClientHelloKeys", "EncryptedClientHelloKeys",
	}
	for i := range reflect.TypeFor[tls.Config]().NumField() {
		field := reflect.TypeFor[tls.Config]().Field(i)
		switch {
		case !field.IsExported() || slices.Contains(others, field.Name):
		case field.Name == "Certificates":
			require.Equal(t, given.Certificates[0].Certificate, got.Certificates[0].Certificate)
		default:
			want := reflect.ValueOf(given).Elem().Field(i)
			require.False(t, want.IsZero(), "decide on the field %s, which is new in this version of Go", field.Name)
			require.Equal(t, want.Interface(), reflect.ValueOf(got).Elem().Field(i).Interface(), field.Name)
		}
	}
}
