package framework

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/watchdog"
)

var watchdogMain atomic.Bool

// WatchdogMain must be the first call in main of a program that uses WithWatchdog. In a process
// that was started as a watchdog it does the watchdog's work and does not return. Elsewhere it only
// remembers that it was called. The watchdog, too, runs the initialisation of packages, which comes
// before main. In tests, TestMain is main.
func WatchdogMain() {
	if watchdog.IsWatchdog() {
		os.Exit(watchdog.Main())
	}
	watchdogMain.Store(true)
}

// watchdogFeed keeps the client's watchdog informed. It is nil for a client without a watchdog.
type watchdogFeed struct {
	keeper *watchdog.Keeper
	clock  clock.Clock
}

// newWatchdogFeed prepares a watchdog for clients with this configuration, and returns the dialer
// to use with it. It starts no process.
func newWatchdogFeed(cfg Config, dial DialFunc, clock clock.Clock, log *slog.Logger) (*watchdogFeed, DialFunc, error) {
	secured, err := watchdog.ExportTLS(cfg.TLS)
	if err != nil {
		return nil, nil, err
	}
	access := watchdog.Access{Servers: cfg.Servers, DialTimeout: cfg.DialTimeout, TLS: secured}
	for _, a := range cfg.Auth {
		access.Auth = append(access.Auth, watchdog.Credential{Scheme: a.Scheme, Auth: a.Auth})
	}
	f := &watchdogFeed{watchdog.NewKeeper(access, log), clock}
	if secured != nil {
		dial = f.keepAuthorities(dial)
	}
	return f, dial, nil
}

// keepAuthorities hands the authorities that verify the servers to the watchdog. It takes them from
// connections, since a certificate pool cannot be read.
func (f *watchdogFeed) keepAuthorities(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if secured, ok := conn.(*tls.Conn); ok && err == nil {
			f.keeper.AddRoots(watchdog.VerifiedRoots(secured.ConnectionState()))
		}
		return conn, err
	}
}

// sessionConnected hands a session and its server to the watchdog.
func (f *watchdogFeed) sessionConnected(epoch int64, h link.Handshake) {
	if f != nil {
		server, _ := splitLabel(h.Server)
		f.keeper.SetSession(watchdog.Session{Epoch: epoch, ID: h.SessionID, Password: h.Password, Timeout: h.Timeout,
			Server: server})
	}
}

// leaseExtended hands the end of a session's lease, by the client's clock, to the watchdog.
func (f *watchdogFeed) leaseExtended(epoch int64, until time.Duration) {
	if f != nil && until != 0 {
		f.keeper.ExtendLease(epoch, func() time.Duration { return until - f.clock.Now() })
	}
}

// leaseShortened is leaseExtended for a lease that ends earlier than before.
func (f *watchdogFeed) leaseShortened(epoch int64, until time.Duration) {
	if f != nil && until != 0 {
		f.keeper.ShortenLease(epoch, func() time.Duration { return until - f.clock.Now() })
	}
}

// close ends the watchdog of a client that was closed.
func (f *watchdogFeed) close() {
	if f != nil {
		f.keeper.Close()
	}
}

// CommandGuard makes the watchdog kill a command, a child process that this process runs because it
// holds something. If this process dies, the watchdog kills the command before it closes the
// session. If this process is stopped, the watchdog kills the command at the end of the session's
// lease. Without WithWatchdog a CommandGuard has no effect. Its methods may be called from any
// goroutine.
type CommandGuard struct {
	feed *watchdogFeed
	id   int64
}

// Started says which process the command is. Call it before you wait for that process. If the
// process leads a process group, the whole group is killed.
func (g *CommandGuard) Started(pid int) {
	if g.feed != nil {
		g.feed.keeper.CommandStarted(g.id, pid)
	}
}

// Ended says that the command has ended, or could not be started.
func (g *CommandGuard) Ended() {
	if g.feed != nil {
		g.feed.keeper.CommandEnded(g.id)
	}
}
