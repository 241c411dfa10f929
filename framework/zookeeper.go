package framework

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/internal/link"
)

// zkConn is go-zookeeper's connection, kept to one session by a link.Transport. The library
// connects, and opens and closes the session; requests, pings and watch events go past it, see
// internal/link.
type zkConn struct {
	conn *zk.Conn
	gone chan struct{} // closed when the library's goroutines have ended
}

// libraryBuffer is the size of the library's two buffers, and of the longest frame that it takes.
// It sends a connect request and a close request, and reads their answers and those to pings. Its
// own buffers of 1.5 MiB each would be most of what a client needs.
const libraryBuffer = 4 << 10

// openZK starts the library on one session. It calls beforeDial before each dial; an error stops
// the attempt to connect.
func openZK(cfg Config, transport *link.Transport, srv *serverList, log *slog.Logger,
	beforeDial func() error) (*zkConn, error) {
	dial := func(network, _ string, _ time.Duration) (net.Conn, error) {
		if err := beforeDial(); err != nil {
			return nil, err
		}
		lookup, cancel := context.WithTimeout(transport.Context(), cfg.DialTimeout)
		defer cancel()
		return transport.Dial(network, srv.nextAddress(lookup), cfg.DialTimeout)
	}
	conn, events, err := zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithHostProvider(hostProvider{transport}), zk.WithDialer(dial),
		zk.WithMaxConnBufferSize(libraryBuffer), zk.WithMaxBufferSize(libraryBuffer), zk.WithLogger(zkLogger{log}),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	z := &zkConn{conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(z.gone)
		for range events {
			// they only tell of the connection's state; the channel is closed when the library has
			// stopped
		}
	}()
	return z, nil
}

// close asks the server to end the session, if it is reachable, and the library to stop.
func (z *zkConn) close() { z.conn.Close() }

// hostProvider leaves the choice of a server to the dialer.
type hostProvider struct{ transport *link.Transport }

func (hostProvider) Init([]string) error { return nil }
func (hostProvider) Len() int            { return 1 }

// Connected is not believed before the session's life is proven on the connection.
func (hostProvider) Connected() {}

// Next makes the library pause, and so notice that it was closed, once the transport opens no
// connection any more.
func (h hostProvider) Next() (server string, retryStart bool) { return "lockstep", h.transport.Over() }

// zkLogger passes the library's messages on at debug level; the client reports the library's errors
// elsewhere.
type zkLogger struct{ *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) { l.Debug(fmt.Sprintf(format, args...)) }
