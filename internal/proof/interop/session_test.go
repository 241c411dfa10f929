package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

const (
	// sessionTimeout is the longest session timeout that the test servers grant. The tests do not
	// wait for it, because kill closes sessions.
	sessionTimeout = 10 * time.Second
	// deadline bounds every wait. Only a violation or a stalled machine reaches it.
	deadline = 2 * time.Minute
)

// session has a session's id and password. With them another client can end the session.
type session struct {
	id       int64
	password []byte
}

// kill ends a session as its expiry does: the servers delete its nodes, and its client notices when
// it connects again. It tries again if the client has moved the session back to another connection.
func (s session) kill(t *testing.T) {
	t.Helper()
	servers := ensemble.Shared(t)
	var err error
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		if err = s.closeAt(servers[0]); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// closeAt connects with the session's password and closes the session. It does nothing if the
// session has ended.
func (s session) closeAt(server string) error {
	conn, err := net.DialTimeout("tcp", server, sessionTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(sessionTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write(s.closeRequests()); err != nil {
		return err
	}
	granted, err := readGrantedSession(conn)
	if err != nil || granted.Session == 0 {
		return err
	}
	_, err = wire.ReadFrame(conn, nil, wire.MaxFrame)
	return err
}

// closeRequests returns a connect request followed by closeSession, so that the client cannot
// reconnect between them.
func (s session) closeRequests() []byte {
	var e wire.Encoder
	mark := e.BeginFrame()
	connect := wire.ConnectRequest{Timeout: int32(sessionTimeout.Milliseconds()), Session: s.id, Password: s.password}
	connect.Encode(&e)
	e.EndFrame(mark)
	mark = e.BeginFrame()
	e.Int(1)
	e.Int(int32(wire.OpCloseSession))
	e.EndFrame(mark)
	return e.Bytes()
}

func readGrantedSession(r io.Reader) (granted wire.ConnectResponse, err error) {
	frame, err := wire.ReadFrame(r, nil, wire.MaxFrame)
	d := wire.NewDecoder(frame)
	granted.Decode(&d)
	return granted, err
}

// connect returns a Lockstep client, which is closed after the test, and its first session.
func connect(t *testing.T) (*framework.Client, session) {
	t.Helper()
	var first sessionRecorder
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := framework.Connect(ctx, framework.Config{Servers: ensemble.Shared(t), SessionTimeout: sessionTimeout},
		framework.WithLogger(slog.New(slog.DiscardHandler)), framework.WithDialer(first.dialAndRecord))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		require.NoError(t, c.Close(ctx))
	})
	return c, first.session(t)
}

// syncWithOthers lets a client's server apply all writes that other clients have made before,
// perhaps on servers that are ahead of it.
func syncWithOthers(t *testing.T, ctx context.Context, c *framework.Client) {
	t.Helper()
	session, err := c.Session(ctx)
	require.NoError(t, err)
	require.NoError(t, session.Sync(ctx, "/"))
}

// sessionRecorder reads a session's password, which the client does not reveal, from the first
// frame of its last connection.
type sessionRecorder struct {
	mu       sync.Mutex
	received *bytes.Buffer
}

func (r *sessionRecorder) dialAndRecord(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = &bytes.Buffer{}
	return recordedConn{conn, r, r.received}, nil
}

// session returns the session once its frame has arrived. A client that has changed its server
// meanwhile waits for another one.
func (r *sessionRecorder) session(t *testing.T) session {
	t.Helper()
	var granted wire.ConnectResponse
	var err error
	poll(t, func() string { return fmt.Sprint("a frame with the session: ", err) }, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		granted, err = readGrantedSession(bytes.NewReader(r.received.Bytes()))
		return err == nil
	})
	return session{granted.Session, granted.Password}
}

// recordedConn is a connection that keeps its first frames.
type recordedConn struct {
	net.Conn
	by       *sessionRecorder
	received *bytes.Buffer
}

func (c recordedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.received.Len() < 1<<10 {
		c.received.Write(b[:n])
	}
	return n, err
}
