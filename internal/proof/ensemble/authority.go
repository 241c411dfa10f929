package ensemble

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// Authority signs the certificates of a test's servers and clients. It is kept in memory. Its
// certificates are valid for a day.
type Authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	serials atomic.Int64
}

const validity = 24 * time.Hour

// NewAuthority returns a new authority, which no client trusts yet.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("ensemble: authority %s: %w", name, err)
	}
	a := &Authority{key: key}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("ensemble: authority %s: %w", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("ensemble: authority %s: %w", name, err)
	}
	return a, nil
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return certPEM(a.cert.Raw) }

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Sign returns a new certificate and its key (PKCS #8), both as PEM, for a server at these hosts,
// which are addresses or names, or for a client.
func (a *Authority) Sign(name string, hosts ...string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("ensemble: key of %s: %w", name, err)
	}
	template := a.template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("ensemble: certificate of %s: %w", name, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("ensemble: key of %s: %w", name, err)
	}
	return certPEM(der), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

func (a *Authority) template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serials.Add(1)),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(validity),
	}
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
