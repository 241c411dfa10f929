package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// pair is a connection of a link: two ends and two directions.
type pair struct {
	link           *Link
	id             int
	nobody         bool // half open: there is no server at the other end
	up, down       *pipe
	client, server *end
}

func newPair(k *Link, id int, nobody bool) *pair {
	p := &pair{link: k, id: id, nobody: nobody, up: newPipe(), down: newPipe()}
	client, server := address(fmt.Sprintf("%s#%d", k.name, id)), address(memoryAddress)
	p.client = &end{pair: p, in: p.down, out: p.up, local: client, remote: server}
	p.server = &end{pair: p, in: p.up, out: p.down, local: server, remote: client, closed: nobody}
	p.up.swallow = nobody
	return p
}

func (p *pair) set(holdUp, holdDown bool, lag time.Duration) {
	p.up.set(holdUp, holdDown, lag)
	p.down.set(holdDown, holdUp, lag)
}

func (p *pair) fail(err error) {
	p.up.fail(err)
	p.down.fail(err)
}

// end is one end of a pair; it is a net.Conn.
type end struct {
	pair          *pair
	in, out       *pipe
	local, remote address
	closed        bool // guarded by the link
}

func (e *end) Read(b []byte) (int, error) {
	n, err := e.in.read(b)
	return n, e.wrap("read", err)
}

func (e *end) Write(b []byte) (int, error) {
	n, err := e.out.write(b)
	return n, e.wrap("write", err)
}

// wrap names the connection in an error; EOF stays as it is.
func (e *end) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "zktest", Source: e.local, Addr: e.remote, Err: err}
}

func (e *end) Close() error {
	e.in.abandon()
	e.out.end()
	e.pair.link.closed(e)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	e.in.setReadDeadline(t)
	e.out.setWriteDeadline(t)
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.setReadDeadline(t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.setWriteDeadline(t)
	return nil
}

// address is a link's name and the connection's number on it, or the server's
// address.
type address string

func (a address) Network() string { return "zktest" }
func (a address) String() string  { return string(a) }
