package faults

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestServersMatchAnswersByNumber shows why the numbers of requests do not begin again with each
// connection (docs/adr/0084-request-numbers-go-on.md): a server confuses a write that the session's
// former server has passed on with one that it has received itself, if both have the same number.
func TestServersMatchAnswersByNumber(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true})
	confused, refused := false, false
	for try := range 20 { // a slow machine may connect too late, and the servers may close a connection
		slow := 200 * time.Millisecond << (try / 4)
		if code, err := deleteAfterMove(t, e, slow, 2); err == nil {
			require.Equal(t, wire.NoNode, code, "the number is a new one")
			refused = true
		}
		if code, err := deleteAfterMove(t, e, slow, 1); err == nil {
			confused = confused || code == wire.OK
		}
		if confused && refused {
			return
		}
	}
	require.Fail(t, "the answer to the create was not given for the deletion")
}

// deleteAfterMove sends the deletion of a node that does not exist, with a number, and returns its
// answer. A create with the number 1, which the session's former server has passed on, is under way
// meanwhile.
func deleteAfterMove(t *testing.T, e *ensemble.Ensemble, slow time.Duration, number int32) (wire.Code, error) {
	require.NoError(t, e.Await(t.Context()))
	followers := e.Followers()
	if len(followers) < 2 {
		return 0, errors.New("a server is too slow to say that it follows")
	}
	s := &rawSession{password: make([]byte, 16)}
	defer func() {
		require.NoError(t, e.Slow(0))
		if s.conn != nil {
			_ = s.conn.Close() // what is there to lose was read
		}
	}()
	if err := s.connect(e.Addr(followers[0])); err != nil {
		return 0, err
	}
	require.NoError(t, e.Slow(slow))
	create := &wire.CreateRequest{Path: "/slow-", Flags: 2, ACL: []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}}
	if err := s.send(1, wire.OpCreate, create); err != nil {
		return 0, err
	}
	time.Sleep(slow / 10) // until the follower has passed it on
	_ = s.conn.Close()
	if err := s.connect(e.Addr(followers[1])); err != nil {
		return 0, err
	}
	if err := s.send(number, wire.OpDelete, &wire.NumberRequest{Path: "/none", Number: -1}); err != nil {
		return 0, err
	}
	frame, err := s.frame()
	if err != nil {
		return 0, err
	}
	var h wire.ReplyHeader
	d := wire.NewDecoder(frame)
	h.Decode(&d)
	require.Equal(t, number, h.Xid)
	return h.Err, d.Err()
}

// rawSession is a session without a client library, so that the test can choose the numbers of its
// requests.
type rawSession struct {
	conn     net.Conn
	session  int64
	password []byte
}

// connect opens a connection to a server, for a new session or the present one.
func (s *rawSession) connect(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	s.conn = conn
	var e wire.Encoder
	mark := e.BeginFrame()
	(&wire.ConnectRequest{Timeout: 40_000, Session: s.session, Password: s.password}).Encode(&e)
	e.EndFrame(mark)
	if _, err = conn.Write(e.Bytes()); err != nil {
		return err
	}
	frame, err := s.frame()
	if err != nil {
		return err
	}
	var r wire.ConnectResponse
	d := wire.NewDecoder(frame)
	r.Decode(&d)
	if d.Err() == nil && r.Session == 0 {
		return errors.New("the session has ended")
	}
	s.session, s.password = r.Session, r.Password
	return d.Err()
}

func (s *rawSession) send(number int32, op wire.Op, body wire.Request) error {
	var e wire.Encoder
	mark := e.BeginFrame()
	wire.RequestHeader{Xid: number, Op: op}.Encode(&e)
	body.Encode(&e)
	e.EndFrame(mark)
	_, err := s.conn.Write(e.Bytes())
	return err
}

func (s *rawSession) frame() ([]byte, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(s.conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(s.conn, frame)
	return frame, err
}
