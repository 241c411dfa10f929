package zkserver

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// write does a single write operation.
func (s *Server) write(r *request) wire.Code {
	t := s.begin(r.conn)
	body := wire.NewRequest(r.head.Op)
	if !r.decode(body) {
		return wire.MarshallingError
	}
	r.path, r.data = pathOf(body), dataOf(body)
	o := t.apply(r.head.Op, body)
	if o.code != wire.OK {
		return o.code
	}
	r.result = o.path
	t.commit()
	o.encode(r.reply)
	return wire.OK
}

// checkAlone is a check outside a multi. ZooKeeper 3.8 fails to encode its
// answer when the check holds, and says nothing at all.
func (s *Server) checkAlone(r *request) wire.Code {
	if code := s.write(r); code != wire.OK {
		return code
	}
	return noReply
}

// deleteContainer is for the server itself; the real one makes no sense of a
// client's.
func (s *Server) deleteContainer(*request) wire.Code {
	s.zxid++
	return wire.BadArguments
}

func (s *Server) reconfig(r *request) wire.Code {
	_, _, _, _ = r.body.String(), r.body.String(), r.body.String(), r.body.Long()
	if r.body.Err() != nil {
		return wire.MarshallingError
	}
	s.zxid++
	if s.config.ReconfigEnabled {
		return wire.Unimplemented
	}
	return wire.ReconfigDisabled
}

// closeSession ends the session; the connection follows.
func (s *Server) closeSession(r *request) wire.Code {
	s.endSession(r.conn.session)
	return wire.OK
}

// authenticate adds to what the connection may do. It does not count as a sign
// of life. An unknown scheme, or too many identities, end the connection.
func (s *Server) authenticate(r *request) bool {
	var body wire.AuthRequest
	if !r.decode(&body) {
		return false
	}
	head := wire.ReplyHeader{Xid: r.head.Xid}
	switch body.Scheme {
	case schemeDigest:
		id := digestOf(body.Auth)
		if id.ID == s.config.SuperDigest {
			r.conn.identify(wire.Identity{Scheme: schemeSuper})
		}
		if !r.conn.identify(id) {
			head.Err = wire.AuthFailed
		}
	case schemeIP: // known already
	default:
		head.Err = wire.AuthFailed
	}
	s.reply(r.conn, head)
	if head.Err != wire.OK {
		s.finish(r.conn)
	}
	return !r.conn.dead
}

// identify adds an identity, unless there are too many.
func (c *conn) identify(id wire.Identity) bool {
	if slices.Contains(c.ids, id) {
		return true
	}
	names := len(id.ID)
	for _, known := range c.ids {
		names += len(known.ID)
	}
	if len(c.ids) >= mostIdentities || names > mostNames {
		return false
	}
	c.ids = append(c.ids, id)
	return true
}

// pathOf is the path in a write's body.
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

// dataOf is the data that a request writes, or nil.
func dataOf(body wire.Request) []byte {
	switch r := body.(type) {
	case *wire.CreateRequest:
		return r.Data
	case *wire.SetDataRequest:
		return r.Data
	}
	return nil
}
