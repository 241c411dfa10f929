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

// zkConn is go-zookeeper's connection, kept to one session by a link.Monitor. The library connects,
// keeps the session and pings; requests go past it, see requests.go.
type zkConn struct {
	conn *zk.Conn
	gone chan struct{} // closed when the library's goroutines have ended
}

// openZK starts the library on one session. pause is called before each attempt to connect; its error stops the attempt. changed is called for
// each watch event, from the receiving goroutine, and must not block.
func openZK(cfg Config, mon *link.Monitor, srv *serverList, log *slog.Logger, pause func() error, changed func(Event)) (*zkConn, error) {
	dial := func(network, _ string, _ time.Duration) (net.Conn, error) {
		if err := pause(); err != nil {
			return nil, err
		}
		lookup, cancel := context.WithTimeout(mon.Context(), cfg.DialTimeout)
		defer cancel()
		return mon.Dial(network, srv.nextAddress(lookup), cfg.DialTimeout)
	}
	tell := func(e zk.Event) {
		if kind, ok := eventKinds[e.Type]; ok {
			changed(Event{Kind: kind, Path: e.Path})
		}
	}
	conn, events, err := zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithHostProvider(hostProvider{mon}), zk.WithDialer(dial),
		zk.WithEventCallback(tell), zk.WithLogger(zkLogger{log}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	z := &zkConn{conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(z.gone)
		for range events { // the callback has taken them in; the channel is closed when the library has stopped
		}
	}()
	return z, nil
}

// close asks the server to end the session, if it is reachable, and the library to stop.
func (z *zkConn) close() { z.conn.Close() }

var eventKinds = map[zk.EventType]EventKind{
	zk.EventNodeCreated: NodeCreated, zk.EventNodeDeleted: NodeDeleted,
	zk.EventNodeDataChanged: NodeChanged, zk.EventNodeChildrenChanged: ChildrenChanged,
}

// hostProvider leaves the choice of a server to the dialer.
type hostProvider struct{ mon *link.Monitor }

func (hostProvider) Init([]string) error { return nil }
func (hostProvider) Len() int            { return 1 }

// Connected is not believed before the session's life is proven on the connection.
func (hostProvider) Connected() {}

// Next makes the library pause, and so notice that it was closed, once the monitor opens no connection any more.
func (h hostProvider) Next() (server string, retryStart bool) { return "lockstep", h.mon.Over() }

// zkLogger passes the library's messages on at debug level; the client reports the library's errors elsewhere.
type zkLogger struct{ *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) { l.Debug(fmt.Sprintf(format, args...)) }
