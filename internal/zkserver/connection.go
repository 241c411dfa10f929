package zkserver

import (
	"bufio"
	"cmp"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// readBuffer is the size of a connection's read buffer. It holds many requests.
const readBuffer = 4 << 10

// maxIdentities and maxIdentityBytes limit the identities of a connection.
const maxIdentities, maxIdentityBytes = 64, 1 << 20

// connection is a client's connection. The server's mutex guards it, except for the outgoing queue.
type connection struct {
	id       int64 // rises in the order of arrival
	nc       net.Conn
	outgoing *outgoingQueue
	all      *connections
	opened   time.Time

	session         *session // nil before the handshake
	ids             []wire.Identity
	detached        bool         // it takes no more requests, and has no watches; its last frames may still be written
	view            *laggingView // what its server knows, while that lags behind; otherwise nil
	follower        *follower    // nil without Config.Followers
	packetsReceived int64
	packetsSent     int64
}

func (c *connection) connectionID() int64 { return c.id }
func (c *connection) sessionID() int64    { return c.session.id }

func (c *connection) remoteIP() string { return c.ids[0].ID }

// remoteIPOf returns the client's IP address, or that of this machine if the network has no
// addresses.
func remoteIPOf(nc net.Conn) string {
	if remote := nc.RemoteAddr(); remote != nil {
		if ap, err := netip.ParseAddrPort(remote.String()); err == nil {
			return ap.Addr().Unmap().String()
		}
	}
	return "127.0.0.1"
}

// addIdentity adds an identity. It returns false if there are too many.
func (c *connection) addIdentity(id wire.Identity) bool {
	if slices.Contains(c.ids, id) {
		return true
	}
	size := len(id.ID)
	for _, known := range c.ids {
		size += len(known.ID)
	}
	if len(c.ids) >= maxIdentities || size > maxIdentityBytes {
		return false
	}
	c.ids = append(c.ids, id)
	return true
}

// processEvent sends a watch event, unless the node's ACL forbids the client to read it. ZooKeeper
// drops such events since 3.8.4 (CVE-2024-23944). The watch ends all the same. While the
// connection's server lags behind, the event waits for catchUp.
func (c *connection) processEvent(e event) {
	if c.view != nil {
		c.view.events = append(c.view.events, e)
		return
	}
	if !isAllowed(e.acl, wire.PermRead, c.ids) {
		return
	}
	frame := &c.all.eventFrame
	frame.Reset()
	mark := frame.BeginFrame()
	wire.ReplyHeader{Xid: wire.XidNotify, Zxid: -1}.Encode(frame)
	wire.WatchEvent{Type: e.typ, State: wire.StateSyncConnected, Path: e.path}.Encode(frame)
	frame.EndFrame(mark)
	c.all.sendFrame(c, frame.Bytes(), 0)
}

// catchUp ends the lag of the connection's server, and sends the events that have waited.
func (c *connection) catchUp() {
	if c.view == nil {
		return
	}
	events := c.view.events
	c.view = nil
	for _, e := range events {
		c.processEvent(e)
	}
}

// readFrames calls begin, which reads the first bytes of the connection, and then serve for each
// frame. It returns when the connection ends or a function returns false.
func (c *connection) readFrames(maxFrame int, begin func(*bufio.Reader) bool, serve func(frame []byte) bool) {
	in := bufio.NewReaderSize(c.nc, readBuffer)
	if !begin(in) {
		return
	}
	frame := make([]byte, 0, 512)
	for {
		var err error
		if frame, err = wire.ReadFrame(in, frame, maxFrame); err != nil {
			return
		}
		c.outgoing.waitDrained()
		if !serve(frame) {
			return
		}
		if cap(frame) > keepBuffer {
			frame = nil
		}
	}
}

// connections are a server's connections. The server's mutex guards them.
type connections struct {
	handshakeTimeout time.Duration
	outgoingLimit    int
	followers        bool
	logger           *slog.Logger
	onDetach         func(*connection)
	onDue            func(*connection) // called when a delayed frame is due, without the server's mutex

	open      map[*connection]struct{} // all connections whose writing goroutine runs, detached ones too
	bySession map[int64]*connection    // the attached connections, by session
	attached  int                      // how many connections are not detached
	lastID    int64

	packetsReceived int64
	packetsSent     int64
	eventFrame      wire.Encoder // reused
}

// newConnections makes an empty set. The set calls onDetach for each connection that ends, and
// onDue when a delayed frame is due.
func newConnections(config Config, onDetach, onDue func(*connection)) *connections {
	return &connections{
		handshakeTimeout: config.HandshakeTimeout, outgoingLimit: config.OutgoingLimit, followers: config.Followers,
		logger:   config.Logger,
		onDetach: onDetach, onDue: onDue,
		open: map[*connection]struct{}{}, bySession: map[int64]*connection{},
	}
}

// addConnection makes a connection. If the client does no handshake within the timeout, the
// connection ends.
func (cs *connections) addConnection(nc net.Conn) *connection {
	cs.lastID++
	c := &connection{id: cs.lastID, nc: nc, all: cs, opened: time.Now(),
		ids: []wire.Identity{{Scheme: schemeIP, ID: remoteIPOf(nc)}}}
	c.outgoing = newOutgoingQueue(nc, cs.outgoingLimit, cs.handshakeTimeout, func() { cs.onDue(c) })
	if cs.followers {
		c.follower = &follower{}
	}
	_ = nc.SetDeadline(time.Now().Add(cs.handshakeTimeout))
	cs.open[c] = struct{}{}
	cs.attached++
	return c
}

// removeConnection forgets a connection after its writer has ended.
func (cs *connections) removeConnection(c *connection) { delete(cs.open, c) }

// countFrom returns the number of attached connections from an IP address.
func (cs *connections) countFrom(ip string) int {
	count := 0
	for c := range cs.open {
		if !c.detached && c.remoteIP() == ip {
			count++
		}
	}
	return count
}

// openByAge returns the open connections in order of arrival, also those whose last frames are
// being written.
func (cs *connections) openByAge() []*connection {
	return slices.SortedFunc(maps.Keys(cs.open), func(a, b *connection) int { return cmp.Compare(a.id, b.id) })
}

// byAge returns the attached connections in order of arrival.
func (cs *connections) byAge() []*connection {
	return slices.DeleteFunc(cs.openByAge(), func(c *connection) bool { return c.detached })
}

// attachSession makes c the connection of a session.
func (cs *connections) attachSession(c *connection, sess *session) {
	c.session = sess
	cs.bySession[sess.id] = c
	_ = c.nc.SetDeadline(time.Time{}) // no deadline from now on: the connection ends with its session
}

func (cs *connections) countReceived(c *connection) {
	cs.packetsReceived++
	c.packetsReceived++
}

// sendFrame queues a frame, through the connection's follower if there is one. If the client leaves
// too many bytes unread, it cuts the connection.
func (cs *connections) sendFrame(c *connection, frame []byte, delay time.Duration) {
	if !c.follower.holdsReply() {
		cs.writeFrame(c, frame, delay)
		return
	}
	frame = slices.Clone(frame)
	c.follower.unanswered++
	c.follower.fromLeader(func() {
		c.follower.unanswered--
		cs.writeFrame(c, frame, delay)
	})
}

func (cs *connections) writeFrame(c *connection, frame []byte, delay time.Duration) {
	if c.detached {
		return
	}
	cs.packetsSent++
	c.packetsSent++
	if !c.outgoing.addFrame(frame, delay) {
		cs.logger.Warn("client does not read", "remote", c.remoteIP())
		cs.cutConnection(c)
	}
}

// cutConnection closes a connection at once and drops its queued frames.
func (cs *connections) cutConnection(c *connection) {
	cs.detachConnection(c)
	c.outgoing.closeNow()
}

// cutExpired cuts the connection of a session that has expired. A follower does that when it gets
// the leader's message.
func (cs *connections) cutExpired(c *connection) {
	if c.follower == nil {
		cs.cutConnection(c)
		return
	}
	c.follower.fromLeader(func() { cs.cutConnection(c) })
}

// cutAll cuts all connections, also those whose last frames are being written.
func (cs *connections) cutAll() {
	for _, c := range cs.openByAge() {
		cs.cutConnection(c)
	}
}

// closeWhenWritten detaches a connection, and closes it after its queued frames were written.
func (cs *connections) closeWhenWritten(c *connection) {
	cs.detachConnection(c)
	c.outgoing.closeWhenWritten()
}

// detachConnection removes a connection from the server's state. It does not end the session.
func (cs *connections) detachConnection(c *connection) {
	if c.detached {
		return
	}
	c.detached = true
	cs.attached--
	cs.onDetach(c)
	if c.session != nil && cs.bySession[c.session.id] == c {
		delete(cs.bySession, c.session.id)
	}
}
