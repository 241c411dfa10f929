package watchdog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const (
	// nextServerDelay is how long a server may take before the watchdog asks the next one as well.
	nextServerDelay = 100 * time.Millisecond
	// exchangeTimeout limits the whole exchange with one server after the dial.
	exchangeTimeout = 3 * time.Second
	// maxRoundDelay limits the pauses between rounds over the servers.
	maxRoundDelay = time.Second
	// maxReplySize limits a reply. Replies have about a hundred bytes.
	maxReplySize = 64 << 10
	// maxSessionTimeouts limits, in session timeouts, how long the watchdog tries to close a
	// session that servers resume but do not close.
	maxSessionTimeouts = 3
)

var (
	errIncompleteSession = errors.New("watchdog: the session has no id or no password")
	errNotClosed         = errors.New("watchdog: the session was resumed, but not closed")
)

// closeOnServers closes the session through any of the servers. It returns nil when the session is
// closed or had ended before. It tries for as long as the session could last: for the session
// timeout, which begins now and again whenever a server resumes the session. The error is that of
// the last round.
func (s Session) closeOnServers(a Access) error {
	if s.ID == 0 || len(s.Password) == 0 {
		// id 0 would open a session, and without a password it may be another client's session
		return errIncompleteSession
	}
	return retryUntilClosed(s.Timeout, func(ctx context.Context) error { return s.tryServers(ctx, a) })
}

// retryUntilClosed calls round, with pauses, until a round has closed the session or the session
// must have expired. If a round has resumed the session without closing it, the timeout begins
// again. After maxSessionTimeouts the tries end in any case. The error is that of the last round.
func retryUntilClosed(timeout time.Duration, round func(context.Context) error) error {
	until := time.Now().Add(timeout)
	ctx, cancel := context.WithTimeout(context.Background(), maxSessionTimeouts*timeout)
	defer cancel()
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, maxRoundDelay) {
		err := round(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errNotClosed) {
			until = time.Now().Add(timeout)
		}
		if time.Now().Add(pause).After(until) || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// tryServers asks one server after the other until one has closed the session. It asks the next one
// after nextServerDelay or when a server has failed. Two servers may close the session at the same
// time.
func (s Session) tryServers(ctx context.Context, a Access) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := s.serverOrder(a.Servers)
	tries := make(chan error, len(servers))
	next := time.NewTimer(0)
	defer next.Stop()
	var errs []error
	for asked := 0; len(errs) < len(servers); {
		select {
		case <-next.C:
			if asked < len(servers) {
				server := servers[asked]
				go func() { tries <- s.closeThrough(ctx, a, server) }()
				asked++
				next.Reset(nextServerDelay)
			}
		case err := <-tries:
			if err == nil {
				return nil
			}
			errs = append(errs, err)
			next.Reset(0)
		}
	}
	return errors.Join(errs...)
}

// serverOrder returns all servers. The first is the one to which the parent was connected, since it
// is the most likely to answer.
func (s Session) serverOrder(servers []string) []string {
	all := make([]string, 0, len(servers)+1)
	if s.Server != "" {
		all = append(all, s.Server)
	}
	for _, server := range servers {
		if server != s.Server {
			all = append(all, server)
		}
	}
	return all
}

// closeThrough closes the session through one server.
func (s Session) closeThrough(ctx context.Context, a Access, server string) error {
	conn, err := a.dialServer(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return err
	}
	known, err := s.resume(conn)
	if err != nil || !known {
		return err
	}
	if err := a.closeResumedSession(conn); err != nil {
		return fmt.Errorf("%w: %w", errNotClosed, err)
	}
	return nil
}

// dialServer connects to a server.
func (a Access) dialServer(ctx context.Context, server string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, a.DialTimeout)
	defer cancel()
	plain := &net.Dialer{}
	if a.TLS == nil {
		return plain.DialContext(ctx, "tcp", server)
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	config, err := a.TLS.clientConfig(host)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, "tcp", server)
}

// resume connects with the session's id, password and timeout. (A server takes the timeout of a
// connect request for the session's new one.) It returns false if the session has ended or has
// another password. Other sessions are not affected.
func (s Session) resume(conn net.Conn) (known bool, err error) {
	request := wire.ConnectRequest{Timeout: int32(s.Timeout / time.Millisecond), Session: s.ID, Password: s.Password}
	if err := writeFrame(conn, request.Encode); err != nil {
		return false, err
	}
	body, err := wire.ReadFrame(conn, nil, maxReplySize)
	if err != nil {
		return false, err
	}
	answer, err := request.DecodeResponse(body)
	return err == nil && !answer.Refused(), err
}

const closeXid = 1

// closeResumedSession sends the credentials, since some servers refuse other requests before them,
// and closes the connection's session.
func (a Access) closeResumedSession(conn net.Conn) error {
	for _, c := range a.Auth {
		if err := writeRequest(conn, wire.XidAuth, wire.OpAuth,
			&wire.AuthRequest{Scheme: c.Scheme, Auth: c.Auth}); err != nil {
			return err
		}
	}
	if err := writeRequest(conn, closeXid, wire.OpCloseSession, &wire.EmptyRequest{}); err != nil {
		return err
	}
	for {
		body, err := wire.ReadFrame(conn, nil, maxReplySize)
		if err != nil {
			return err
		}
		var h wire.ReplyHeader
		d := wire.NewDecoder(body)
		h.Decode(&d)
		switch {
		case d.Err() != nil:
			return d.Err()
		case h.Xid == closeXid && h.Err == wire.OK:
			return nil
		case h.Err != wire.OK:
			return fmt.Errorf("watchdog: a server refused a request: %v", h.Err)
		}
	}
}

func writeRequest(conn net.Conn, xid int32, op wire.Op, body wire.Request) error {
	return writeFrame(conn, func(e *wire.Encoder) {
		wire.RequestHeader{Xid: xid, Op: op}.Encode(e)
		body.Encode(e)
	})
}

func writeFrame(conn net.Conn, encode func(*wire.Encoder)) error {
	var e wire.Encoder
	mark := e.BeginFrame()
	encode(&e)
	e.EndFrame(mark)
	_, err := conn.Write(e.Bytes())
	return err
}
