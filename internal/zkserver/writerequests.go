package zkserver

import "github.com/lockstep-go/lockstep/internal/wire"

// write processes a single write operation.
func (p *requestProcessor) write(r *request) wire.Code {
	t := p.db.beginTransaction(r.connection.session.id, r.connection.ids)
	body := wire.NewRequest(r.header.Op)
	if !r.decode(body) {
		return wire.MarshallingError
	}
	r.path, r.data = pathOf(body), dataOf(body)
	o := t.applyOperation(r.header.Op, body)
	if o.code != wire.OK {
		return o.code
	}
	r.result = o.path
	p.db.commitTransaction(t)
	o.encodeReply(r.reply)
	return wire.OK
}

// checkVersion processes a check outside a multi. If the check succeeds, ZooKeeper 3.8 fails to
// encode the answer and sends none.
func (p *requestProcessor) checkVersion(r *request) wire.Code {
	if code := p.write(r); code != wire.OK {
		return code
	}
	return noReply
}

// deleteContainer refuses the request: only the server itself deletes containers.
func (p *requestProcessor) deleteContainer(*request) wire.Code {
	p.db.zxid++
	return wire.BadArguments
}

func (p *requestProcessor) reconfig(r *request) wire.Code {
	_, _, _, _ = r.body.String(), r.body.String(), r.body.String(), r.body.Long()
	if r.body.Err() != nil {
		return wire.MarshallingError
	}
	p.db.zxid++
	if p.config.ReconfigEnabled {
		return wire.Unimplemented
	}
	return wire.ReconfigDisabled
}

// pathOf returns the path in the body of a write.
func pathOf(body wire.Request) string {
	switch r := body.(type) {
	case *wire.CreateRequest:
		return r.Path
	case *wire.SetDataRequest:
		return r.Path
	case *wire.SetACLRequest:
		return r.Path
	case *wire.NumberRequest:
		return r.Path
	}
	return ""
}

// dataOf returns the data that a request writes, or nil.
func dataOf(body wire.Request) []byte {
	switch r := body.(type) {
	case *wire.CreateRequest:
		return r.Data
	case *wire.SetDataRequest:
		return r.Data
	}
	return nil
}

// multi applies all of its parts or none. The header of the reply has OK in both cases, and the
// results of the parts show a failure. Only if a part cannot be decoded, the header has an error.
func (p *requestProcessor) multi(r *request) wire.Code {
	t := p.db.beginTransaction(r.connection.session.id, r.connection.ids)
	var body wire.MultiRequest
	if !r.decode(&body) || !onlyWrites(body.Parts) {
		return wire.MarshallingError
	}
	t.atomic = true
	outcomes, code := t.applyAll(body.Parts)
	if !p.faults.isIdle() {
		r.describeParts(body.Parts, outcomes, p.db.zxid)
	}
	switch code {
	case wire.OK:
		p.db.commitTransaction(t)
	case wire.MarshallingError:
		t.rollback()
		return code
	default:
		t.rollback()
	}
	for _, o := range outcomes {
		encodePart(r.reply, o, code != wire.OK)
	}
	wire.MultiEnd.Encode(r.reply)
	return wire.OK
}

func onlyWrites(parts []wire.MultiPart) bool {
	for _, p := range parts {
		if p.Op == wire.OpGetData || p.Op == wire.OpGetChildren {
			return false
		}
	}
	return true
}

// multiRead answers each part by itself. If the whole answer exceeds OutgoingLimit, it cuts the
// connection.
func (p *requestProcessor) multiRead(r *request) wire.Code {
	var body wire.MultiRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	for _, part := range body.Parts {
		if part.Op != wire.OpGetData && part.Op != wire.OpGetChildren {
			return wire.MarshallingError
		}
		p.readPart(r, part.Op, part.Body.(*wire.WatchRequest).Path)
		if r.reply.Len() > p.config.OutgoingLimit {
			p.connections.cutConnection(r.connection)
			return noReply
		}
	}
	wire.MultiEnd.Encode(r.reply)
	return wire.OK
}

func (p *requestProcessor) readPart(r *request, op wire.Op, path string) {
	n, code := p.findReadable(r, path)
	if code != wire.OK {
		encodePart(r.reply, failedOperation(op, code), true)
		return
	}
	wire.MultiHeader{Op: op}.Encode(r.reply)
	if op == wire.OpGetChildren {
		n.encodeChildren(r.reply)
		return
	}
	n.encodeData(r.reply)
}

// describeParts records the parts of a multi for observers and faults.
func (r *request) describeParts(parts []wire.MultiPart, outcomes []operationResult, zxid int64) {
	for i, part := range parts {
		r.parts = append(r.parts, Request{Session: r.connection.session.id, Op: part.Op, Path: pathOf(part.Body),
			Data: dataOf(part.Body), Result: outcomes[i].path, Zxid: zxid, Err: outcomes[i].code})
	}
}
