package link

import (
	"bufio"
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
	readBuffer         = 16 << 10 // of a connection
	sizeLen            = 4
	replyHead          = 16                   // xid, zxid, error
	minConnectResponse = 4 + 4 + 8 + 4        // protocol, timeout, session, password's length
	maxConnectResponse = readBuffer - sizeLen // it is peeked at
)

// peekSize returns the length that the next frame announces.
func peekSize(br *bufio.Reader, handshakeDone bool) (int, error) {
	b, err := br.Peek(sizeLen)
	if err != nil {
		return 0, err
	}
	n, least, most := binary.BigEndian.Uint32(b), uint32(replyHead), uint32(math.MaxInt32)
	if !handshakeDone {
		least, most = minConnectResponse, maxConnectResponse
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
