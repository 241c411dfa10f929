package zkserver

import "github.com/lockstep-go/lockstep/internal/wire"

// multi applies all of its parts or none. The reply's header says OK either
// way, and a failure shows in the results, unless it is that the server makes
// nothing of a part.
func (s *Server) multi(r *request) wire.Code {
	t := s.begin(r.conn)
	var body wire.MultiRequest
	if !r.decode(&body) || !onlyWrites(body.Parts) {
		return wire.MarshallingError
	}
	t.atomic = true
	outcomes, code := t.applyAll(body.Parts)
	r.noteParts(body.Parts, outcomes)
	switch code {
	case wire.OK:
		t.commit()
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

// applyAll stops at the first part that fails; those before it read as OK and
// those after it as RuntimeInconsistency.
func (t *txn) applyAll(parts []wire.MultiPart) (outcomes []outcome, code wire.Code) {
	for _, p := range parts {
		op := partOp(p)
		if code != wire.OK {
			outcomes = append(outcomes, failed(op, wire.RuntimeInconsistency))
			continue
		}
		o := t.apply(op, p.Body)
		code = o.code
		outcomes = append(outcomes, o)
	}
	return outcomes, code
}

// partOp is the operation a part stands for. Inside a multi the real server
// goes by a create's flags and not by its operation code.
func partOp(p wire.MultiPart) wire.Op {
	create, is := p.Body.(*wire.CreateRequest)
	switch {
	case !is:
		return p.Op
	case create.Flags == wire.FlagContainer:
		return wire.OpCreateContainer
	case create.Flags == wire.FlagTTL || create.Flags == wire.FlagPersistentSequentialTTL:
		return wire.OpCreateTTL
	default:
		return wire.OpCreate
	}
}

func encodePart(e *wire.Encoder, o outcome, rolledBack bool) {
	if rolledBack {
		wire.MultiHeader{Op: wire.OpError, Err: o.code}.Encode(e)
		e.Int(int32(o.code))
		return
	}
	switch o.op {
	case wire.OpCreateContainer, wire.OpCreateTTL:
		wire.MultiHeader{Op: wire.OpCreate2}.Encode(e)
	default:
		wire.MultiHeader{Op: o.op}.Encode(e)
	}
	o.encode(e)
}

// encode appends the body of a successful write's answer.
func (o *outcome) encode(e *wire.Encoder) {
	switch o.op {
	case wire.OpCreate:
		e.String(o.path)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		e.String(o.path)
		o.stat.Encode(e)
	case wire.OpSetData, wire.OpSetACL:
		o.stat.Encode(e)
	}
}

// multiRead answers every part on its own. A client that asks for more than may wait for it is cut off.
func (s *Server) multiRead(r *request) wire.Code {
	var body wire.MultiRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	for _, p := range body.Parts {
		if p.Op != wire.OpGetData && p.Op != wire.OpGetChildren {
			return wire.MarshallingError
		}
		s.readPart(r, p.Op, p.Body.(*wire.WatchRequest).Path)
		if r.reply.Len() > s.config.OutgoingLimit {
			s.cut(r.conn)
			return noReply
		}
	}
	wire.MultiEnd.Encode(r.reply)
	return wire.OK
}

func (s *Server) readPart(r *request, op wire.Op, path string) {
	n, code := s.readable(r, path)
	if code != wire.OK {
		encodePart(r.reply, failed(op, code), true)
		return
	}
	wire.MultiHeader{Op: op}.Encode(r.reply)
	if op == wire.OpGetChildren {
		n.encodeChildren(r.reply)
		return
	}
	encodeData(r.reply, n)
}
