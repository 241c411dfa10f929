package framework

import (
	"context"
	"crypto/tls"
	"net"
)

// newDialer opens TCP connections, encrypted when the configuration says so.
func newDialer(cfg Config) DialFunc {
	plain := &net.Dialer{}
	if cfg.TLS == nil {
		return plain.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		own := cfg.TLS.Clone()
		if own.ServerName == "" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			own.ServerName = host
		}
		return (&tls.Dialer{NetDialer: plain, Config: own}).DialContext(ctx, network, address)
	}
}
