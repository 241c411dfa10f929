package ensemble

import (
	"fmt"
	"os"
	"strconv"
)

// writeTLS writes server i's key store and trust store.
func (l *layout) writeTLS(i int, a *Authority) error {
	cert, key, err := a.Sign("server-"+strconv.Itoa(i+1), "127.0.0.1")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.keyStore(i), append(key, cert...), 0o600); err != nil {
		return fmt.Errorf("ensemble: server's key store: %w", err)
	}
	if err := os.WriteFile(l.trustStore(i), a.PEM(), 0o600); err != nil {
		return fmt.Errorf("ensemble: server's trust store: %w", err)
	}
	return nil
}

func (l *layout) keyStore(i int) string   { return l.data(i) + "-keys.pem" }
func (l *layout) trustStore(i int) string { return l.data(i) + "-trust.pem" }

// tlsConf returns the lines of server i's configuration for TLS with client certificates. ZooKeeper
// supports that with Netty only.
func (l *layout) tlsConf(i int) []string {
	return []string{
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"secureClientPort=" + strconv.Itoa(l.secure[i]),
		"secureClientPortAddress=127.0.0.1",
		"ssl.keyStore.location=" + l.keyStore(i),
		"ssl.keyStore.type=PEM",
		"ssl.trustStore.location=" + l.trustStore(i),
		"ssl.trustStore.type=PEM",
		"ssl.clientAuth=need",
	}
}

// SecureAddr returns server i's address for clients that use TLS. It needs Config.Authority.
func (e *Ensemble) SecureAddr(i int) string { return loopback(e.layout.secure[i]) }

// SecureAddrs returns the addresses of all servers for clients that use TLS.
func (e *Ensemble) SecureAddrs() []string {
	addrs := make([]string, len(e.servers))
	for i := range addrs {
		addrs[i] = e.SecureAddr(i)
	}
	return addrs
}
