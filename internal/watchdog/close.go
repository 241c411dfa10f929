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
	// hedge is how long a server may take before the next is asked as well.
	hedge = 100 * time.Millisecond
	// answerLimit bounds the whole exchange with one server, beside the dial.
	answerLimit = 3 * time.Second
	// mostPause bounds the pauses between rounds over the servers.
	mostPause = time.Second
	// mostFrame bounds an answer: they are a hundred bytes or so.
	mostFrame = 64 << 10
	// mostTimeouts bounds, in session timeouts, how long a session is tried for that servers go on taking up.
	mostTimeouts = 3
)

var (
	errNobody     = errors.New("watchdog: the session has no id or no password")
	errUnfinished = errors.New("watchdog: the session was taken up, but not closed")
)

// end closes the session through any of the servers, and returns once it is closed, or was over already. It tries
// for as long as the session could last without its process: the timeout, counted from now, or from when a server
// last took the session up. The error is that of the last try.
func (s Session) end(a Access) error {
	if s.ID == 0 || len(s.Password) == 0 { // would open a session, or could be anybody's
		return errNobody
	}
	return untilClosed(s.Timeout, func(ctx context.Context) error { return s.round(ctx, a) })
}

// untilClosed calls round, with pauses, until it has closed the session or until the session is over by its timeout.
// A round that took the session up without closing it begins the timeout anew; after mostTimeouts of them the tries end all the same.
// The error is that of the last round.
func untilClosed(timeout time.Duration, round func(context.Context) error) error {
	until := time.Now().Add(timeout)
	ctx, cancel := context.WithTimeout(context.Background(), mostTimeouts*timeout)
	defer cancel()
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, mostPause) {
		err := round(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errUnfinished) {
			until = time.Now().Add(timeout)
		}
		if time.Now().Add(pause).After(until) || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// round asks the servers in turn, each a moment after the former or when that has failed, until one has closed
// the session. Two that are asked at once do no harm.
func (s Session) round(ctx context.Context, a Access) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := s.order(a.Servers)
	tries := make(chan error, len(servers))
	next := time.NewTimer(0)
	defer next.Stop()
	var errs []error
	for asked := 0; len(errs) < len(servers); {
		select {
		case <-next.C:
			if asked < len(servers) {
				server := servers[asked]
				go func() { tries <- s.try(ctx, a, server) }()
				asked++
				next.Reset(hedge)
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

// order puts the server that the process was connected to first: it is the likeliest to answer.
func (s Session) order(servers []string) []string {
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

// try closes the session through one server.
func (s Session) try(ctx context.Context, a Access, server string) error {
	conn, err := a.dial(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	known, err := s.takeUp(conn)
	if err != nil || !known {
		return err
	}
	if err := a.close(conn); err != nil {
		return fmt.Errorf("%w: %w", errUnfinished, err)
	}
	return nil
}

// dial connects to a server.
func (a Access) dial(ctx context.Context, server string) (net.Conn, error) {
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
	config, err := a.TLS.config(host)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext(ctx, "tcp", server)
}

// takeUp connects with the session's id and password, and with its own timeout, which would be changed else. A
// session that is over, or has another password, is not known. Nothing is done to any other.
func (s Session) takeUp(conn net.Conn) (known bool, err error) {
	ask := wire.ConnectRequest{Timeout: int32(s.Timeout / time.Millisecond), Session: s.ID, Password: s.Password}
	if err := write(conn, ask.Encode); err != nil {
		return false, err
	}
	body, err := wire.ReadFrame(conn, nil, mostFrame)
	if err != nil {
		return false, err
	}
	var answer wire.ConnectResponse
	d := wire.NewDecoder(body)
	answer.Decode(&d)
	switch {
	case d.Err() != nil:
		return false, d.Err()
	case answer.Session == 0 || answer.Timeout <= 0:
		return false, nil
	case answer.Session != s.ID:
		return false, fmt.Errorf("watchdog: a server answered with session %#x", answer.Session)
	}
	return true, nil
}

const xidClose = 1

// close presents the credentials, which some servers want before anything else, and closes the connection's
// session.
func (a Access) close(conn net.Conn) error {
	for _, c := range a.Auth {
		if err := request(conn, wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: c.Scheme, Auth: c.Auth}); err != nil {
			return err
		}
	}
	if err := request(conn, xidClose, wire.OpCloseSession, &wire.EmptyRequest{}); err != nil {
		return err
	}
	for {
		body, err := wire.ReadFrame(conn, nil, mostFrame)
		if err != nil {
			return err
		}
		var h wire.ReplyHeader
		d := wire.NewDecoder(body)
		h.Decode(&d)
		switch {
		case d.Err() != nil:
			return d.Err()
		case h.Xid == xidClose && h.Err == wire.OK:
			return nil
		case h.Err != wire.OK:
			return fmt.Errorf("watchdog: refused: %v", h.Err)
		}
	}
}

func request(conn net.Conn, xid int32, op wire.Op, body wire.Request) error {
	return write(conn, func(e *wire.Encoder) {
		wire.RequestHeader{Xid: xid, Op: op}.Encode(e)
		body.Encode(e)
	})
}

func write(conn net.Conn, encode func(*wire.Encoder)) error {
	var e wire.Encoder
	mark := e.BeginFrame()
	encode(&e)
	e.EndFrame(mark)
	_, err := conn.Write(e.Bytes())
	return err
}
