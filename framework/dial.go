package framework

import (
	"context"
	"crypto/tls"
	"net"
)

// newDialer opens TCP connections to labels of servers, encrypted when the configuration says so. A certificate must be one of the server's name.
func newDialer(cfg Config) DialFunc {
	plain := &net.Dialer{Resolver: resolver.Load()}
	return func(ctx context.Context, network, label string) (net.Conn, error) {
		server, address := unlabel(label)
		if cfg.TLS == nil {
			return plain.DialContext(ctx, network, address)
		}
		own := cfg.TLS.Clone()
		if own.ServerName == "" {
			host, _, err := net.SplitHostPort(server)
			if err != nil {
				return nil, err
			}
			own.ServerName = host
		}
		return (&tls.Dialer{NetDialer: plain, Config: own}).DialContext(ctx, network, address)
	}
}
