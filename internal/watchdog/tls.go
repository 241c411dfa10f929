package watchdog

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// TLS is the part of a tls.Config that another process can use.
type TLS struct {
	ServerName             string
	SkipVerify             bool
	MinVersion, MaxVersion uint16
	CipherSuites           []uint16
	// OwnRoots says that only Roots are trusted, and not the system's authorities.
	OwnRoots bool
	// Roots are certificates in DER.
	Roots [][]byte
	// Certificates are those of the client.
	Certificates []KeyPair
}

// KeyPair is a certificate with its chain, in DER, and its key in PKCS #8.
type KeyPair struct {
	Chain [][]byte
	Key   []byte
}

var (
	errTLSFunctions = errors.New("Config.TLS has a function, which another process cannot call")
	errTLSKey       = errors.New("a private key of Config.TLS cannot be sent to another process")
)

// ExportTLS returns the part of c that another process needs to connect in the same way. The error says which part of c cannot be exported.
//
// The certificates of a pool cannot be read, so Roots is empty. The caller adds the roots that VerifiedRoots returns for its connections.
func ExportTLS(c *tls.Config) (*TLS, error) {
	if c == nil {
		return nil, nil
	}
	if c.VerifyPeerCertificate != nil || c.VerifyConnection != nil || c.GetClientCertificate != nil {
		return nil, errTLSFunctions
	}
	t := &TLS{
		ServerName: c.ServerName, SkipVerify: c.InsecureSkipVerify, MinVersion: c.MinVersion, MaxVersion: c.MaxVersion,
		CipherSuites: c.CipherSuites, OwnRoots: c.RootCAs != nil,
	}
	for _, pair := range c.Certificates {
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errTLSKey, err)
		}
		t.Certificates = append(t.Certificates, KeyPair{Chain: pair.Certificate, Key: key})
	}
	return t, nil
}

// VerifiedRoots returns certificates, in DER, of the authorities by which the peer of a connection was verified.
func VerifiedRoots(c tls.ConnectionState) (roots [][]byte) {
	for _, chain := range c.VerifiedChains {
		roots = append(roots, chain[len(chain)-1].Raw)
	}
	return roots
}

// clientConfig returns the configuration for a connection to a server on this host.
func (t *TLS) clientConfig(host string) (*tls.Config, error) {
	c := &tls.Config{
		ServerName: t.ServerName, InsecureSkipVerify: t.SkipVerify, MinVersion: t.MinVersion, MaxVersion: t.MaxVersion,
		CipherSuites: t.CipherSuites,
	}
	if c.ServerName == "" {
		c.ServerName = host
	}
	if t.OwnRoots {
		c.RootCAs = x509.NewCertPool()
	}
	for _, der := range t.Roots {
		root, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("watchdog: a root certificate: %w", err)
		}
		c.RootCAs.AddCert(root)
	}
	for _, pair := range t.Certificates {
		key, err := x509.ParsePKCS8PrivateKey(pair.Key)
		if err != nil {
			return nil, fmt.Errorf("watchdog: a private key: %w", err)
		}
		c.Certificates = append(c.Certificates, tls.Certificate{Certificate: pair.Chain, PrivateKey: key})
	}
	return c, nil
}

func (t *TLS) encodeFields(e *wire.Encoder) {
	e.String(t.ServerName)
	e.Bool(t.SkipVerify)
	e.Int(int32(t.MinVersion))
	e.Int(int32(t.MaxVersion))
	e.Int(int32(len(t.CipherSuites)))
	for _, suite := range t.CipherSuites {
		e.Int(int32(suite))
	}
	e.Bool(t.OwnRoots)
	encodeBuffers(e, t.Roots)
	e.Int(int32(len(t.Certificates)))
	for _, pair := range t.Certificates {
		encodeBuffers(e, pair.Chain)
		e.Buffer(pair.Key)
	}
}

func decodeTLS(d *wire.Decoder) *TLS {
	t := &TLS{ServerName: d.String(), SkipVerify: d.Bool(), MinVersion: uint16(d.Int()), MaxVersion: uint16(d.Int())}
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		t.CipherSuites = append(t.CipherSuites, uint16(d.Int()))
	}
	t.OwnRoots, t.Roots = d.Bool(), decodeBuffers(d)
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		t.Certificates = append(t.Certificates, KeyPair{Chain: decodeBuffers(d), Key: cloneBuffer(d)})
	}
	return t
}

func encodeBuffers(e *wire.Encoder, all [][]byte) {
	e.Int(int32(len(all)))
	for _, b := range all {
		e.Buffer(b)
	}
}

func decodeBuffers(d *wire.Decoder) (all [][]byte) {
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		all = append(all, cloneBuffer(d))
	}
	return all
}
