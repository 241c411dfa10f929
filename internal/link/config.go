package link

import (
	"context"
	"net"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Config says how a Transport dials.
type Config struct {
	// Dial opens the underlying connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now reads the clock that Handshake.SentAt is told in.
	Now func() time.Duration
	// HandshakeTimeout bounds the time from the end of a dial to the answer of the connect request.
	HandshakeTimeout func() time.Duration
	// Failed is told of each dial or handshake that failed, and of each connection that the library
	// and the Transport have not closed and that has ended after the answer to its connect request
	// without an answer to anything else, by server address; may be nil. It is told before the next
	// dial.
	Failed func(address string, err error)
	// Answered is told of each request and its reply, before the request's own Done; may be nil. It
	// must not block.
	Answered func(wire.Op, Reply)
	// Event is told of each watch event, in the order of the answers; may be nil. It must not
	// block.
	Event func(wire.WatchEvent)
}
