package zkserver

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// requestProcessor processes the requests of all connections, one at a time and in the order in
// which they arrive. The server's mutex guards it.
type requestProcessor struct {
	config      Config
	db          *database
	connections *connections
	faults      *faultInjector
	counts      map[wire.Op]int64 // how many requests of each operation have arrived

	request request      // reused
	reply   wire.Encoder // reused
}

func newRequestProcessor(config Config, db *database, connections *connections,
	faults *faultInjector) *requestProcessor {
	return &requestProcessor{config: config, db: db, connections: connections, faults: faults,
		counts: map[wire.Op]int64{}}
}

// request is the request that is being processed.
type request struct {
	connection *connection
	header     wire.RequestHeader
	body       wire.Decoder
	reply      *wire.Encoder // handlers append the reply's body

	// For observers and faults; see Request.
	path   string
	data   []byte
	result string
	parts  []Request
}

func (r *request) decode(body wire.Request) bool {
	body.Decode(&r.body)
	return r.body.Err() == nil
}

// acceptsNullPath reports whether the real server treats a null path of this operation as an empty
// one. It cannot decode null paths of other operations.
func acceptsNullPath(op wire.Op) bool {
	switch op {
	case wire.OpSetData, wire.OpSetACL, wire.OpCheck, wire.OpSync, wire.OpGetEphemerals, wire.OpAddWatch,
		wire.OpRemoveWatches:
		return true
	}
	return false
}

// requestHandler processes a request and appends the reply's body to r.reply. If it returns an
// error, that body is dropped.
type requestHandler func(*requestProcessor, *request) wire.Code

// noReply is the result of a handler for a request without a reply. No code of the protocol is
// positive.
const noReply wire.Code = 1

var requestHandlers = map[wire.Op]requestHandler{
	wire.OpCreate:               (*requestProcessor).write,
	wire.OpCreate2:              (*requestProcessor).write,
	wire.OpCreateContainer:      (*requestProcessor).write,
	wire.OpCreateTTL:            (*requestProcessor).write,
	wire.OpDelete:               (*requestProcessor).write,
	wire.OpSetData:              (*requestProcessor).write,
	wire.OpSetACL:               (*requestProcessor).write,
	wire.OpCheck:                (*requestProcessor).checkVersion,
	wire.OpMulti:                (*requestProcessor).multi,
	wire.OpReconfig:             (*requestProcessor).reconfig,
	wire.OpDeleteContainer:      (*requestProcessor).deleteContainer,
	wire.OpMultiRead:            (*requestProcessor).multiRead,
	wire.OpExists:               (*requestProcessor).exists,
	wire.OpGetData:              (*requestProcessor).getData,
	wire.OpGetACL:               (*requestProcessor).getACL,
	wire.OpGetChildren:          (*requestProcessor).getChildren,
	wire.OpGetChildren2:         (*requestProcessor).getChildren2,
	wire.OpGetAllChildrenNumber: (*requestProcessor).getAllChildrenNumber,
	wire.OpGetEphemerals:        (*requestProcessor).getEphemerals,
	wire.OpSync:                 (*requestProcessor).sync,
	wire.OpPing:                 (*requestProcessor).ping,
	wire.OpWhoAmI:               (*requestProcessor).whoAmI,
	wire.OpSetWatches:           (*requestProcessor).setWatches,
	wire.OpSetWatches2:          (*requestProcessor).setWatches,
	wire.OpAddWatch:             (*requestProcessor).addWatch,
	wire.OpCheckWatches:         (*requestProcessor).checkWatches,
	wire.OpRemoveWatches:        (*requestProcessor).removeWatches,
	wire.OpCloseSession:         (*requestProcessor).closeSession,
}

// connect answers a handshake. It returns false if the connection ends.
func (p *requestProcessor) connect(c *connection, frame []byte) bool {
	p.connections.countReceived(c)
	var request wire.ConnectRequest
	d := wire.NewDecoder(frame)
	if request.Decode(&d); d.Err() != nil || p.db.failure != nil {
		return false
	}
	if request.LastZxid > p.db.zxid {
		p.config.Logger.Info("client has seen a later zxid than this server", "client", request.LastZxid,
			"server", p.db.zxid)
		return false // without a reply, as on the real server
	}
	sess := p.openOrResumeSession(&request)
	response := wire.ConnectResponse{Password: make([]byte, wire.PasswordSize), Short: request.Short}
	if sess != nil {
		p.connections.attachSession(c, sess)
		response.Timeout = int32(sess.timeout / time.Millisecond)
		response.Session, response.Password = sess.id, p.db.sessions.passwords.passwordOf(sess.id)
	}
	p.reply.Reset()
	mark := p.reply.BeginFrame()
	response.Encode(&p.reply)
	p.reply.EndFrame(mark)
	p.connections.sendFrame(c, p.reply.Bytes(), 0)
	if sess == nil {
		p.connections.closeWhenWritten(c)
	}
	return sess != nil
}

// openOrResumeSession returns nil if the session to resume has ended or the password is wrong. It
// cuts an older connection of the session before it checks the password, as the real server does.
func (p *requestProcessor) openOrResumeSession(request *wire.ConnectRequest) *session {
	timeout := time.Duration(request.Timeout) * time.Millisecond
	timeout = min(max(timeout, p.config.MinSessionTimeout), p.config.MaxSessionTimeout)
	if request.Session == 0 {
		return p.db.openSession(timeout)
	}
	sess := p.db.sessions.byID[request.Session]
	if sess == nil {
		return nil
	}
	if older := p.connections.bySession[sess.id]; older != nil {
		p.connections.cutConnection(older)
	}
	if subtle.ConstantTimeCompare(request.Password, p.db.sessions.passwords.passwordOf(sess.id)) == 0 {
		p.config.Logger.Warn("wrong password", "session", sessionName(sess.id))
		return nil
	}
	sess.timeout = timeout
	p.db.sessions.touchSession(sess)
	return sess
}

// takeRequest processes the request in the frame, through the connection's follower if there is
// one. It returns false if the connection ends.
func (p *requestProcessor) takeRequest(c *connection, frame []byte) bool {
	f := c.follower
	if f == nil {
		return p.processRequest(c, frame)
	}
	f.record()
	if f.unanswered == 0 && opOf(frame) == wire.OpPing {
		f.answersItself = true
		defer func() { f.answersItself = false }()
		return p.processRequest(c, frame)
	}
	if f.holdsUp || len(f.up) > 0 {
		frame = slices.Clone(frame)
	}
	f.unanswered++
	f.toLeader(func() {
		f.unanswered--
		ended := p.db.sessions.byID[c.session.id] != c.session
		if !c.detached && (!ended || opOf(frame) == wire.OpSync) { // the leader does not check the session of a sync
			p.processRequest(c, frame)
		}
	})
	return !c.detached
}

// opOf returns the operation of a request, or 0 if its header cannot be decoded.
func opOf(frame []byte) wire.Op {
	var header wire.RequestHeader
	d := wire.NewServerDecoder(frame)
	if header.Decode(&d); d.Err() != nil {
		return 0
	}
	return header.Op
}

// processRequest processes the request in the frame. It returns false if the connection ends.
func (p *requestProcessor) processRequest(c *connection, frame []byte) bool {
	p.connections.countReceived(c)
	r := &p.request
	*r = request{connection: c, body: wire.NewServerDecoder(frame), reply: &p.reply}
	if r.header.Decode(&r.body); r.body.Err() != nil {
		return false
	}
	if !acceptsNullPath(r.header.Op) {
		r.body.RefuseNullPaths()
	}
	handle, known := requestHandlers[r.header.Op]
	if known || r.header.Op == wire.OpAuth {
		p.counts[r.header.Op]++
	}
	if r.header.Op == wire.OpAuth {
		return p.authenticate(r)
	}
	if c.follower == nil {
		p.db.sessions.touchSession(c.session)
	}
	if !known {
		p.sendHeader(c, wire.ReplyHeader{Xid: r.header.Xid, Zxid: -1, Err: wire.Unimplemented})
		p.connections.closeWhenWritten(c)
		return false
	}
	view := c.view
	switch {
	case !p.faults.isIdle() &&
		p.faults.throttlesRequest(Request{Session: c.session.id, Op: r.header.Op, Zxid: p.db.zxid}):
		handle = refuseThrottled
	case view != nil && !view.answers(r.header.Op):
		c.catchUp()
	}
	open := p.handleAndReply(r, handle)
	if view != nil && c.view == nil { // the request has ended the lag, which begins again now
		c.view = newLaggingView(p.db.tree, p.db.zxid, view.leader)
	}
	return open
}

func refuseThrottled(*requestProcessor, *request) wire.Code { return wire.ThrottledOp }

// handleAndReply runs the handler and sends the reply. The watch events that the request triggers
// are queued before it.
func (p *requestProcessor) handleAndReply(r *request, handle requestHandler) bool {
	p.reply.Reset()
	mark := p.reply.BeginFrame()
	headerAt := p.reply.Len()
	wire.ReplyHeader{}.Encode(&p.reply)
	code := handle(p, r)
	if code != wire.OK {
		p.reply.Truncate(headerAt + wire.ReplyHeaderSize)
	}
	wire.ReplyHeader{Xid: r.header.Xid, Zxid: p.zxidFor(r.connection), Err: code}.EncodeAt(&p.reply, headerAt)
	p.reply.EndFrame(mark)

	delay, drop := p.applyFaults(r, code)
	if !drop && code != noReply {
		p.connections.sendFrame(r.connection, p.reply.Bytes(), delay)
	}
	if drop || r.header.Op == wire.OpCloseSession {
		p.connections.closeWhenWritten(r.connection)
	}
	if p.reply.Len() > keepBuffer {
		p.reply = wire.Encoder{}
	}
	return !r.connection.detached
}

// treeFor returns the tree that the connection's server knows.
func (p *requestProcessor) treeFor(c *connection) *dataTree {
	if c.view != nil {
		return c.view.tree
	}
	return p.db.tree
}

// zxidFor returns the last transaction that the connection's server knows.
func (p *requestProcessor) zxidFor(c *connection) int64 {
	if c.view != nil {
		return c.view.zxid
	}
	return p.db.zxid
}

func (p *requestProcessor) applyFaults(r *request, code wire.Code) (delay time.Duration, drop bool) {
	if p.faults.isIdle() {
		return 0, false
	}
	if code == noReply {
		code = wire.OK
	}
	return p.faults.applyToReply(Request{Session: r.connection.session.id, Op: r.header.Op, Path: r.path,
		Result: r.result,
		Data:   r.data, Zxid: p.db.zxid, Err: code, Parts: r.parts})
}

func (p *requestProcessor) sendHeader(c *connection, h wire.ReplyHeader) {
	p.reply.Reset()
	mark := p.reply.BeginFrame()
	h.Encode(&p.reply)
	p.reply.EndFrame(mark)
	p.connections.sendFrame(c, p.reply.Bytes(), 0)
}

// authenticate adds an identity to the connection. The request does not prolong the session. After
// an unknown scheme, or with too many identities, the connection ends.
func (p *requestProcessor) authenticate(r *request) bool {
	var body wire.AuthRequest
	if !r.decode(&body) {
		return false
	}
	header := wire.ReplyHeader{Xid: r.header.Xid}
	switch body.Scheme {
	case schemeDigest:
		id := digestOf(body.Auth)
		if id.ID == p.config.SuperDigest {
			r.connection.addIdentity(wire.Identity{Scheme: schemeSuper})
		}
		if !r.connection.addIdentity(id) {
			header.Err = wire.AuthFailed
		}
	case schemeIP: // each connection already has its address as an identity
	default:
		header.Err = wire.AuthFailed
	}
	p.sendHeader(r.connection, header)
	if header.Err != wire.OK {
		p.connections.closeWhenWritten(r.connection)
	}
	return !r.connection.detached
}

// closeSession ends the session. handleAndReply closes the connection.
func (p *requestProcessor) closeSession(r *request) wire.Code {
	p.db.closeSession(r.connection.session)
	return wire.OK
}

// ping replies with the xid of pings, even if the request has another.
func (p *requestProcessor) ping(r *request) wire.Code {
	r.header.Xid = wire.XidPing
	return wire.OK
}

func (p *requestProcessor) sync(r *request) wire.Code {
	var body wire.PathRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	r.reply.String(body.Path)
	return wire.OK
}
