package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// connectionPair is a connection of a link: two ends and two directions.
type connectionPair struct {
	link           *Link
	id             int
	halfOpen       bool // there is no server at the other end
	up, down       *bytePipe
	client, server *connectionEnd
}

func newConnectionPair(k *Link, id int, halfOpen bool) *connectionPair {
	p := &connectionPair{link: k, id: id, halfOpen: halfOpen, up: newBytePipe(), down: newBytePipe()}
	client, server := linkAddress(fmt.Sprintf("%s#%d", k.name, id)), linkAddress(memoryAddress)
	p.client = &connectionEnd{pair: p, in: p.down, out: p.up, local: client, remote: server}
	p.server = &connectionEnd{pair: p, in: p.up, out: p.down, local: server, remote: client, closed: halfOpen}
	p.up.discard = halfOpen
	return p
}

func (p *connectionPair) setFaults(holdToServer, holdToClient bool, delay time.Duration) {
	p.up.setFaults(holdToServer, holdToClient, delay)
	p.down.setFaults(holdToClient, holdToServer, delay)
}

func (p *connectionPair) failBothEnds(err error) {
	p.up.failWith(err)
	p.down.failWith(err)
}

// connectionEnd is one end of a pair; it is a net.Conn.
type connectionEnd struct {
	pair          *connectionPair
	in, out       *bytePipe
	local, remote linkAddress
	closed        bool // guarded by the link
}

func (e *connectionEnd) Read(b []byte) (int, error) {
	n, err := e.in.readArrived(b)
	return n, e.wrapError("read", err)
}

func (e *connectionEnd) Write(b []byte) (int, error) {
	n, err := e.out.writeAll(b)
	return n, e.wrapError("write", err)
}

// wrapError adds the connection to an error, except to io.EOF.
func (e *connectionEnd) wrapError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "zktest", Source: e.local, Addr: e.remote, Err: err}
}

func (e *connectionEnd) Close() error {
	e.in.endReading()
	e.out.endWriting()
	e.pair.link.removeIfClosed(e)
	return nil
}

func (e *connectionEnd) LocalAddr() net.Addr  { return e.local }
func (e *connectionEnd) RemoteAddr() net.Addr { return e.remote }

func (e *connectionEnd) SetDeadline(t time.Time) error {
	e.in.setReadDeadline(t)
	e.out.setWriteDeadline(t)
	return nil
}

func (e *connectionEnd) SetReadDeadline(t time.Time) error {
	e.in.setReadDeadline(t)
	return nil
}

func (e *connectionEnd) SetWriteDeadline(t time.Time) error {
	e.out.setWriteDeadline(t)
	return nil
}

// linkAddress is a link's name and the connection's number on it, or the server's
// address.
type linkAddress string

func (a linkAddress) Network() string { return "zktest" }
func (a linkAddress) String() string  { return string(a) }
