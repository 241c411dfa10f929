package link

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// maxFrame bounds an answer. ZooKeeper's own limit is about 1 MiB for requests, but a list may exceed it.
const maxFrame = 64 << 20

const (
	sizeLen      = 4
	replyHead    = 16                                      // xid, zxid, error
	connectReply = 4 + 4 + 8 + 4                           // protocol, timeout, session, password's length
	greetingLen  = sizeLen + 4 + 8 + 4 + 8                 // length, protocol, zxid seen, timeout, session
	requestHead  = sizeLen + 4 + 4                         // length, xid, operation
	multiHead    = 4 + 1 + 4                               // of a transaction's operation: its code, end, error
	maxPassword  = readBuffer - sizeLen - connectReply - 1 // what can be peeked at
)

// parseGreeting returns the session id of a connect request: 0 asks for a new session.
func parseGreeting(frame []byte) (sessionID int64, err error) {
	if len(frame) < greetingLen {
		return 0, fmt.Errorf("link: connect request of %d bytes", len(frame))
	}
	return int64(binary.BigEndian.Uint64(frame[greetingLen-8:])), nil
}

// parseRequest returns a request's number, its operation and the path it begins with, if it does with one: of
// a transaction, the path of its first operation.
func parseRequest(frame []byte) (xid, op int32, path []byte) {
	if len(frame) < requestHead {
		return 0, 0, nil
	}
	xid = int32(binary.BigEndian.Uint32(frame[4:]))
	op = int32(binary.BigEndian.Uint32(frame[8:]))
	head := requestHead
	if op == int32(wire.OpMulti) {
		head += multiHead
	}
	if len(frame) < head+4 {
		return xid, op, nil
	}
	n := int64(binary.BigEndian.Uint32(frame[head:]))
	if body := frame[head+4:]; n <= int64(len(body)) {
		path = body[:n]
	}
	return xid, op, path
}

// peekSize returns the length that the next frame announces.
func peekSize(br *bufio.Reader, greeted bool) (int, error) {
	b, err := br.Peek(sizeLen)
	if err != nil {
		return 0, err
	}
	n, least := binary.BigEndian.Uint32(b), uint32(replyHead)
	if !greeted {
		least = connectReply
	}
	if n < least || n > maxFrame {
		return 0, fmt.Errorf("link: a frame of %d bytes: the peer does not speak ZooKeeper's protocol", n)
	}
	return int(n), nil
}

// peekHandshake reads a connect request's answer without taking it out of br.
func peekHandshake(br *bufio.Reader, size int) (Handshake, error) {
	b, err := br.Peek(sizeLen + connectReply)
	if err != nil {
		return Handshake{}, err
	}
	h := Handshake{
		Timeout:   time.Duration(int32(binary.BigEndian.Uint32(b[8:]))) * time.Millisecond,
		SessionID: int64(binary.BigEndian.Uint64(b[12:])),
	}
	n := int(int32(binary.BigEndian.Uint32(b[20:])))
	if n < 0 || n > size-connectReply || n > maxPassword {
		return Handshake{}, fmt.Errorf("link: a session password of %d bytes in a frame of %d", n, size)
	}
	if b, err = br.Peek(sizeLen + connectReply + n); err != nil {
		return Handshake{}, err
	}
	h.Password = append([]byte(nil), b[sizeLen+connectReply:]...)
	return h, nil
}

// peekReply reads a reply's number and transaction without taking it out of br.
func peekReply(br *bufio.Reader) (xid int32, zxid int64, err error) {
	b, err := br.Peek(sizeLen + replyHead)
	if err != nil {
		return 0, 0, err
	}
	return int32(binary.BigEndian.Uint32(b[4:])), int64(binary.BigEndian.Uint64(b[8:])), nil
}
