package framework_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	return key
}

func (a *authority) sign(name string, ips ...net.IP) tls.Certificate {
	key := a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// secure puts TLS, with client certificates, before a server.
func secure(t *testing.T, zk *zktest.Server, ca *authority, own tls.Certificate) string {
	plain, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", plain)
			require.NoError(t, err)
			go func() { defer far.Close(); _, _ = io.Copy(far, near) }()
			go func() { defer near.Close(); _, _ = io.Copy(near, far) }()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	loopback := net.IPv4(127, 0, 0, 1)
	zk := zktest.Start(t)
	addr := secure(t, zk, ca, ca.sign("server", loopback))
	stranger := secure(t, zk, ca, ca.sign("elsewhere"))
	for name, c := range map[string]struct {
		addr string
		cfg  *tls.Config
		want string
	}{
		"good": {addr,
			&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.sign("client")}}, ""},
		"wrong authority": {addr,
			&tls.Config{RootCAs: other.pool(), Certificates: []tls.Certificate{ca.sign("client")}},
			"unknown authority"},
		"wrong name": {stranger,
			&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.sign("client")}}, "127.0.0.1"},
		"no client certificate": {addr, &tls.Config{RootCAs: ca.pool()}, "certificate required"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := framework.Config{Servers: []string{c.addr}, TLS: c.cfg}
			if c.want != "" {
				_ = connectInVain(t, time.Second/2, cfg, c.want)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			client, err := framework.Connect(ctx, cfg)
			require.NoError(t, err)
			_, err = client.Exists(ctx, "/")
			require.NoError(t, err)
			require.NoError(t, client.Close(ctx))
		})
	}
}

func TestTLSFromEnv(t *testing.T) {
	ca := newAuthority(t)
	pair := ca.sign("client")
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"ca": {Type: "CERTIFICATE", Bytes: ca.cert.Raw}, "cert": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		"key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	t.Setenv(framework.EnvTLSCA, filepath.Join(dir, "ca"))
	t.Setenv(framework.EnvTLSCert, filepath.Join(dir, "cert"))
	t.Setenv(framework.EnvTLSKey, filepath.Join(dir, "key"))
	cfg, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.Len(t, cfg.TLS.Certificates, 1)
	t.Setenv(framework.EnvTLSKey, filepath.Join(dir, "ca"))
	_, err = framework.ConfigFromEnv()
	require.ErrorContains(t, err, framework.EnvTLSKey)
}
