package watchdog

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"reflect"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// TLS is the part of a tls.Config that another process can use.
type TLS struct {
	ServerName             string
	SkipVerify             bool
	MinVersion, MaxVersion uint16
	CipherSuites           []uint16
	Curves                 []tls.CurveID
	Protocols              []string // of ALPN
	Renegotiation          tls.RenegotiationSupport
	// ClientHelloConfigs are EncryptedClientHelloConfigList.
	ClientHelloConfigs []byte
	// OwnRoots says that only Roots are trusted, and not the system's authorities.
	OwnRoots bool
	// Roots are certificates in DER.
	Roots [][]byte
	// Certificates are those of the client.
	Certificates []KeyPair
}

// KeyPair is a certificate with its chain, in DER, and its key in PKCS #8.
type KeyPair struct {
	Chain      [][]byte
	Key        []byte
	Algorithms []tls.SignatureScheme // nil: all that the key permits
}

var (
	errTLSFunctions = errors.New("Config.TLS has a function, which another process cannot call")
	errTLSKey       = errors.New("a private key of Config.TLS cannot be sent to another process")
	errTLSPool      = errors.New(
		"Config.TLS.RootCAs may have a constraint (CertPool.AddCertWithConstraint), which another process cannot check")
)

// ExportTLS returns the part of c that another process needs to connect in the same way. The error
// says which part of c cannot be exported.
//
// The certificates of a pool cannot be read, so Roots is empty. The caller adds the roots that
// VerifiedRoots returns for its connections.
func ExportTLS(c *tls.Config) (*TLS, error) {
	if c == nil {
		return nil, nil
	}
	if c.VerifyPeerCertificate != nil || c.VerifyConnection != nil || c.GetClientCertificate != nil || c.Time != nil ||
		c.EncryptedClientHelloRejectionVerify != nil {
		return nil, errTLSFunctions
	}
	if mayHaveConstraint(c.RootCAs) {
		return nil, errTLSPool
	}
	t := &TLS{
		ServerName: c.ServerName, SkipVerify: c.InsecureSkipVerify, MinVersion: c.MinVersion, MaxVersion: c.MaxVersion,
		CipherSuites: c.CipherSuites, Curves: c.CurvePreferences, Protocols: c.NextProtos,
		Renegotiation:      c.Renegotiation,
		ClientHelloConfigs: c.EncryptedClientHelloConfigList, OwnRoots: c.RootCAs != nil,
	}
	for _, pair := range c.Certificates {
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errTLSKey, err)
		}
		t.Certificates = append(t.Certificates,
			KeyPair{Chain: pair.Certificate, Key: key, Algorithms: pair.SupportedSignatureAlgorithms})
	}
	return t, nil
}

// mayHaveConstraint reports whether a certificate of a pool has a constraint, or Go's pools cannot
// be looked into any more. No method of a pool tells.
func mayHaveConstraint(pool *x509.CertPool) bool {
	if pool == nil {
		return false
	}
	all := reflect.ValueOf(pool).Elem().FieldByName("lazyCerts")
	if all.Kind() != reflect.Slice {
		return true
	}
	for i := range all.Len() {
		constraint := all.Index(i).FieldByName("constraint")
		if constraint.Kind() != reflect.Func || !constraint.IsNil() {
			return true
		}
	}
	return false
}

// VerifiedRoots returns certificates, in DER, of the authorities by which the peer of a connection
// was verified.
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
		CipherSuites: t.CipherSuites, CurvePreferences: t.Curves, NextProtos: t.Protocols,
		Renegotiation:                  t.Renegotiation,
		EncryptedClientHelloConfigList: t.ClientHelloConfigs,
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
		c.Certificates = append(c.Certificates,
			tls.Certificate{Certificate: pair.Chain, PrivateKey: key, SupportedSignatureAlgorithms: pair.Algorithms})
	}
	return c, nil
}

func (t *TLS) encodeFields(e *wire.Encoder) {
	e.String(t.ServerName)
	e.Bool(t.SkipVerify)
	e.Int(int32(t.MinVersion))
	e.Int(int32(t.MaxVersion))
	encodeNumbers(e, t.CipherSuites)
	encodeNumbers(e, t.Curves)
	e.Strings(t.Protocols)
	e.Int(int32(t.Renegotiation))
	e.Buffer(t.ClientHelloConfigs)
	e.Bool(t.OwnRoots)
	encodeBuffers(e, t.Roots)
	e.Int(int32(len(t.Certificates)))
	for _, pair := range t.Certificates {
		encodeBuffers(e, pair.Chain)
		e.Buffer(pair.Key)
		encodeNumbers(e, pair.Algorithms)
	}
}

func decodeTLS(d *wire.Decoder) *TLS {
	t := &TLS{ServerName: d.String(), SkipVerify: d.Bool(), MinVersion: uint16(d.Int()), MaxVersion: uint16(d.Int())}
	t.CipherSuites, t.Curves = decodeNumbers[uint16](d), decodeNumbers[tls.CurveID](d)
	t.Protocols, t.Renegotiation, t.ClientHelloConfigs = d.Strings(), tls.RenegotiationSupport(d.Int()), cloneBuffer(d)
	t.OwnRoots, t.Roots = d.Bool(), decodeBuffers(d)
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		t.Certificates = append(t.Certificates,
			KeyPair{Chain: decodeBuffers(d), Key: cloneBuffer(d), Algorithms: decodeNumbers[tls.SignatureScheme](d)})
	}
	return t
}

func encodeNumbers[T ~uint16](e *wire.Encoder, all []T) {
	e.Int(int32(len(all)))
	for _, n := range all {
		e.Int(int32(n))
	}
}

func decodeNumbers[T ~uint16](d *wire.Decoder) (all []T) {
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		all = append(all, T(d.Int()))
	}
	return all
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
