package link

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const (
	// MaxQueued bounds the bytes of requests that wait to be written to a connection. Offer refuses
	// more.
	MaxQueued = 8 << 20
	// chunkSize is how long a chunk may be before another one is begun; the last request of a chunk
	// may make it longer. An urgent request waits for one chunk of other requests at most.
	chunkSize = 64 << 10
)

// outbox holds the frames that wait to be written to a connection. Urgent frames leave first;
// within each of the two lists the order is that in which they came. Its connection's mutex guards
// it.
type outbox struct {
	urgent, normal []*chunk
	waiting        int    // bytes in normal
	spare          *chunk // an empty one, for later
}

// chunk is what leaves with one call of Write: whole frames, and the calls among them.
type chunk struct {
	frames wire.Encoder
	calls  []*Call
	ends   []int // of the calls' frames
}

// lastChunk returns the chunk that takes the next frame.
func (o *outbox) lastChunk(urgent bool) *chunk {
	list := &o.normal
	if urgent {
		list = &o.urgent
	}
	if n := len(*list); n > 0 && (*list)[n-1].frames.Len() < chunkSize {
		return (*list)[n-1]
	}
	c := o.spare
	if o.spare = nil; c == nil {
		c = &chunk{}
	}
	*list = append(*list, c)
	return c
}

// putConnectRequest queues the connect request.
func (o *outbox) putConnectRequest(request *wire.ConnectRequest) {
	frames := &o.lastChunk(true).frames
	mark := frames.BeginFrame()
	request.Encode(frames)
	frames.EndFrame(mark)
}

// putFrame queues the library's only other frame, the request to close the session.
func (o *outbox) putFrame(frame []byte) { o.lastChunk(true).frames.Raw(frame) }

// putPingPair queues two pings, for the servers to read at once.
func (o *outbox) putPingPair() {
	frames := &o.lastChunk(true).frames
	for range 2 {
		mark := frames.BeginFrame()
		wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}.Encode(frames)
		frames.EndFrame(mark)
	}
}

// putCall queues a request.
func (o *outbox) putCall(call *Call, xid int32) {
	c := o.lastChunk(call.Urgent)
	before := c.frames.Len()
	mark := c.frames.BeginFrame()
	wire.RequestHeader{Xid: xid, Op: call.Op}.Encode(&c.frames)
	call.Body.Encode(&c.frames)
	c.frames.EndFrame(mark)
	c.calls, c.ends = append(c.calls, call), append(c.ends, c.frames.Len())
	if !call.Urgent {
		o.waiting += c.frames.Len() - before
	}
}

// takeChunk takes out the chunk that is to be written now, or returns nil. From then on its calls
// count as sent.
func (o *outbox) takeChunk() *chunk {
	var c *chunk
	switch {
	case len(o.urgent) > 0:
		c = o.urgent[0]
		o.urgent = slices.Delete(o.urgent, 0, 1)
	case len(o.normal) > 0:
		c = o.normal[0]
		o.normal = slices.Delete(o.normal, 0, 1)
		o.waiting -= c.frames.Len()
	default:
		return nil
	}
	for _, call := range c.calls {
		call.sent = true
	}
	return c
}

// markUnsent records that only n bytes of a chunk could be written: a server that has not got all
// of a frame has not seen it.
func (c *chunk) markUnsent(n int) {
	for i, call := range c.calls {
		call.sent = c.ends[i] <= n
	}
}

// keepForLater keeps a chunk that was written for later, unless a burst has blown it up.
func (o *outbox) keepForLater(c *chunk) {
	if c.frames.Len() > chunkSize {
		return
	}
	c.frames.Reset()
	clear(c.calls)
	c.calls, c.ends = c.calls[:0], c.ends[:0]
	o.spare = c
}
