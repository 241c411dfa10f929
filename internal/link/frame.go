package link

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// MaxAnswer bounds an answer, in bytes. ZooKeeper's own limit is about 1 MiB for requests, but a
// list may exceed it.
const MaxAnswer = 64 << 20

const (
	readBuffer   = 16 << 10 // of a connection
	sizeLen      = 4
	replyHead    = 16                                      // xid, zxid, error
	connectReply = 4 + 4 + 8 + 4                           // protocol, timeout, session, password's length
	greetingLen  = sizeLen + 4 + 8 + 4 + 8                 // length, protocol, zxid seen, timeout, session
	zxidSeenAt   = sizeLen + 4                             // in a greeting
	maxPassword  = readBuffer - sizeLen - connectReply - 1 // what can be peeked at
	// a connect request's answer; its last byte says whether the server is read-only
	maxConnect = connectReply + maxPassword + 1
)

// parseGreeting returns the session id of a connect request: 0 asks for a new session.
func parseGreeting(frame []byte) (sessionID int64, err error) {
	if len(frame) < greetingLen {
		return 0, fmt.Errorf("link: connect request of %d bytes", len(frame))
	}
	return int64(binary.BigEndian.Uint64(frame[greetingLen-8:])), nil
}

// withZxidSeen returns a connect request that says that this transaction, or a later one, was seen.
func withZxidSeen(frame []byte, zxid int64) []byte {
	out := bytes.Clone(frame)
	zxid = max(zxid, int64(binary.BigEndian.Uint64(out[zxidSeenAt:])))
	binary.BigEndian.PutUint64(out[zxidSeenAt:], uint64(zxid))
	return out
}

// peekSize returns the length that the next frame announces.
func peekSize(br *bufio.Reader, greeted bool) (int, error) {
	b, err := br.Peek(sizeLen)
	if err != nil {
		return 0, err
	}
	n, least, most := binary.BigEndian.Uint32(b), uint32(replyHead), uint32(math.MaxInt32)
	if !greeted {
		least, most = connectReply, maxConnect
	}
	if n < least || n > most {
		return 0, errFrameLength(n)
	}
	return int(n), nil
}

func errFrameLength(size uint32) error {
	return fmt.Errorf("link: a frame of %d bytes: the peer does not speak ZooKeeper's protocol", size)
}

// Handshake is what a connection's connect request and its answer said.
type Handshake struct {
	// SentAt is a reading of the clock before the connect request was written.
	SentAt time.Duration
	// SessionID and Password identify the session to any server.
	SessionID int64
	Password  []byte
	// Timeout is the session timeout that the server granted on this connection.
	Timeout time.Duration
	// Server is the address that was dialled.
	Server string
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

// peekReply reads a reply's head without taking it out of br.
func peekReply(br *bufio.Reader) (h wire.ReplyHeader, err error) {
	b, err := br.Peek(sizeLen + replyHead)
	if err != nil {
		return h, err
	}
	d := wire.NewDecoder(b[sizeLen:])
	h.Decode(&d)
	return h, d.Err()
}
