package conformance

import (
	"bufio"
	"net"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// link is a connection that sends and receives frames.
type link struct {
	conn net.Conn
	in   *bufio.Reader
}

func newLink(conn net.Conn) *link { return &link{conn: conn, in: bufio.NewReader(conn)} }

// largestReply is more than the largest answer in these tests.
const largestReply = 16 << 20

// read returns the next frame's body.
func (l *link) read() ([]byte, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return wire.ReadFrame(l.in, nil, largestReply)
}

// write sends one frame that consists of the parts.
func (l *link) write(parts ...interface{ Encode(*wire.Encoder) }) error {
	var e wire.Encoder
	mark := e.BeginFrame()
	for _, p := range parts {
		p.Encode(&e)
	}
	e.EndFrame(mark)
	return l.writeRaw(e.Bytes())
}

func (l *link) writeRaw(b []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

// connect sends the first frame and reads the server's. An error means that the server
// closed the connection instead.
func (l *link) connect(req wire.ConnectRequest) (wire.ConnectResponse, error) {
	var resp wire.ConnectResponse
	if err := l.write(&req); err != nil {
		return resp, err
	}
	body, err := l.read()
	if err != nil {
		return resp, err
	}
	d := wire.NewDecoder(body)
	resp.Decode(&d)
	return resp, d.Err()
}
