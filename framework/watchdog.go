package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/watchdog"
)

var watchdogMain atomic.Bool

// WatchdogMain is to be the first call in main of a program that uses WithWatchdog: in a process that was started
// as a watchdog it does a watchdog's work and does not return. Everywhere else it does nothing but note that it was
// called. What runs before main, the initialisation of packages, runs in the watchdog too. In tests, TestMain is main.
func WatchdogMain() {
	if watchdog.Asked() {
		os.Exit(watchdog.Main())
	}
	watchdogMain.Store(true)
}

// WithWatchdog has a crash of this process noticed in milliseconds, whatever the session timeout: a tiny second
// process of the same executable sees the end of this one, and closes its session.
//
// Guarantee: the watchdog acts only when this process is dead, also by SIGKILL: the kernel ends a pipe between the
// two. It follows the client's sessions, is started again when it is killed, and does nothing after Close. The
// commands of Session.GuardCommand are dead before the session is closed. The process is in a session of its own,
// and inherits no descriptor but its pipes.
//
// Not guaranteed: the session lasts until its timeout, as without the option, when the watchdog is killed together
// with this process (a container, a control group, the machine), or stopped. A process that is stopped is not
// dead. What it sent just before its end may arrive later than the next holder's writes: compare tokens.
//
// Unix only: elsewhere, and where no process can be started, there is one warning in the log. The error says so
// when main has not called WatchdogMain, with WithDialer, whose connections another process cannot make, and with
// a Config.TLS that decides by functions or whose keys cannot be read.
func WithWatchdog() Option {
	return func(c *Client) error {
		if !watchdogMain.Load() {
			return errors.New("WithWatchdog: main has not called framework.WatchdogMain, which must be its first call")
		}
		c.watched = true
		return nil
	}
}

// watchdogFeed tells the client's watchdog what it must know. A nil one is of a client without a watchdog.
type watchdogFeed struct {
	keeper *watchdog.Keeper
	clock  Clock
}

// startWatchdogFeed prepares the client's watchdog. It starts nothing.
func (c *Client) startWatchdogFeed() error {
	if !c.watched {
		return nil
	}
	if c.dialed {
		return errors.New("WithWatchdog: another process cannot make the connections of WithDialer")
	}
	secured, err := watchdog.ExportTLS(c.cfg.TLS)
	if err != nil {
		return err
	}
	access := watchdog.Access{Servers: c.cfg.Servers, DialTimeout: c.cfg.DialTimeout, TLS: secured}
	for _, a := range c.cfg.Auth {
		access.Auth = append(access.Auth, watchdog.Credential{Scheme: a.Scheme, Auth: a.Auth})
	}
	c.follower = &watchdogFeed{watchdog.NewKeeper(access, c.log), c.clock}
	if secured != nil {
		c.dial = c.follower.noteAuthorities(c.dial)
	}
	return nil
}

// noteAuthorities notes by which authorities servers are verified: a certificate pool cannot be read.
func (f *watchdogFeed) noteAuthorities(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if secured, ok := conn.(*tls.Conn); ok && err == nil {
			f.keeper.Trust(watchdog.Anchors(secured.ConnectionState()))
		}
		return conn, err
	}
}

// sessionConnected tells of a session, and of where it is connected.
func (f *watchdogFeed) sessionConnected(epoch int64, h link.Handshake) {
	if f != nil {
		server, _ := splitLabel(h.Server)
		f.keeper.Follow(watchdog.Session{Epoch: epoch, ID: h.SessionID, Password: h.Password, Timeout: h.Timeout, Server: server})
	}
}

// leaseExtended tells of the end of a session's lease, by the client's clock.
func (f *watchdogFeed) leaseExtended(epoch int64, until time.Duration) {
	if f != nil && until != 0 {
		f.keeper.Lease(epoch, func() time.Duration { return until - f.clock.Now() })
	}
}

// close ends the watchdog: the client has ended in order.
func (f *watchdogFeed) close() {
	if f != nil {
		f.keeper.Close()
	}
}

// CommandGuard has the watchdog end a command, a child process, that this process runs because it holds something:
// before the session is closed for a dead process, and at the end of the session's lease if the process is stopped.
// Without WithWatchdog it does nothing. Its methods may be called from any goroutine.
type CommandGuard struct {
	follower *watchdogFeed
	id       int64
}

// GuardCommand announces a command that the session's holds allow. To be called before the command is started; if
// this process dies between that and Started, the session lasts until its timeout.
func (s *Session) GuardCommand() *CommandGuard {
	g := &CommandGuard{follower: s.client.follower}
	if g.follower == nil {
		return g
	}
	g.id = g.follower.keeper.Begin(s.epoch)
	s.mu.Lock()
	until := s.lease.until
	s.mu.Unlock()
	g.follower.leaseExtended(s.epoch, until)
	return g
}

// Started says which process the command is. It must not have been waited for. The process group that it leads, if
// it does, is ended with it.
func (g *CommandGuard) Started(pid int) {
	if g.follower != nil {
		g.follower.keeper.Runs(g.id, pid)
	}
}

// Ended says that the command has ended, or could not be started.
func (g *CommandGuard) Ended() {
	if g.follower != nil {
		g.follower.keeper.Over(g.id)
	}
}
