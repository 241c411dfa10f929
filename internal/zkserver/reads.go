package zkserver

import (
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// readable finds a node that the asker may read.
func (s *Server) readable(r *request, path string) (*node, wire.Code) {
	n := s.tree.get(path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !allowed(n.acl, wire.PermRead, r.conn.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func encodeStat(e *wire.Encoder, n *node) {
	stat := n.stat()
	stat.Encode(e)
}

func encodeData(e *wire.Encoder, n *node) {
	e.Buffer(n.data)
	encodeStat(e, n)
}

// exists needs no permission, and alone leaves a watch on a missing node.
func (s *Server) exists(r *request) wire.Code {
	var body wire.WatchRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	if strings.IndexByte(body.Path, 0) >= 0 {
		return wire.BadArguments
	}
	if body.Watch {
		s.dataWatches.add(body.Path, r.conn, OneShot)
	}
	n := s.tree.get(body.Path)
	if n == nil {
		return wire.NoNode
	}
	encodeStat(r.reply, n)
	return wire.OK
}

func (s *Server) getData(r *request) wire.Code {
	return s.watchedRead(r, &s.dataWatches, func(n *node) { encodeData(r.reply, n) })
}

func (s *Server) getChildren(r *request) wire.Code {
	return s.watchedRead(r, &s.childWatches, func(n *node) { n.encodeChildren(r.reply) })
}

func (s *Server) getChildren2(r *request) wire.Code {
	return s.watchedRead(r, &s.childWatches, func(n *node) {
		n.encodeChildren(r.reply)
		encodeStat(r.reply, n)
	})
}

func (s *Server) watchedRead(r *request, watches *watchTable, encode func(*node)) wire.Code {
	var body wire.WatchRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	n, code := s.readable(r, body.Path)
	if code != wire.OK {
		return code
	}
	if body.Watch {
		watches.add(body.Path, r.conn, OneShot)
	}
	encode(n)
	return wire.OK
}

// getACL asks for READ or ADMIN; who has not ADMIN sees digests redacted.
func (s *Server) getACL(r *request) wire.Code {
	n, code := s.pathRead(r, wire.PermRead|wire.PermAdmin)
	if code != wire.OK {
		return code
	}
	acl := n.acl
	if !allowed(acl, wire.PermAdmin, r.conn.ids) {
		acl = redacted(acl)
	}
	r.reply.ACLs(acl)
	encodeStat(r.reply, n)
	return wire.OK
}

func (s *Server) getAllChildrenNumber(r *request) wire.Code {
	n, code := s.pathRead(r, wire.PermRead)
	if code != wire.OK {
		return code
	}
	number := n.descendants()
	if r.path == "" { // the root's path begins with nothing and a slash, as those below it do
		number++
	}
	r.reply.Int(int32(number))
	return wire.OK
}

func (s *Server) pathRead(r *request, perms int32) (*node, wire.Code) {
	var body wire.PathRequest
	if !r.decode(&body) {
		return nil, wire.MarshallingError
	}
	r.path = body.Path
	n := s.tree.get(body.Path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !allowed(n.acl, perms, r.conn.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func (s *Server) getEphemerals(r *request) wire.Code {
	var body wire.PathRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	prefix := body.Path
	if p := strings.TrimSpace(prefix); p == "" || p == "/" {
		prefix = "/"
	}
	var paths []string
	for _, n := range r.conn.session.ephemerals.nodes {
		if strings.HasPrefix(n.path, prefix) {
			paths = append(paths, n.path)
		}
	}
	r.reply.Strings(paths)
	return wire.OK
}

func (s *Server) sync(r *request) wire.Code {
	var body wire.PathRequest
	if !r.decode(&body) {
		return wire.MarshallingError
	}
	r.path = body.Path
	r.reply.String(body.Path)
	return wire.OK
}

// ping has an xid of its own, whatever it was sent with.
func (s *Server) ping(r *request) wire.Code {
	r.head.Xid = wire.XidPing
	return wire.OK
}

// whoAmI names users without their passwords' hashes.
func (s *Server) whoAmI(r *request) wire.Code {
	r.reply.Int(int32(len(r.conn.ids)))
	for _, id := range r.conn.ids {
		user := id.ID
		if id.Scheme == schemeDigest {
			user, _, _ = strings.Cut(user, ":")
		}
		r.reply.String(id.Scheme)
		r.reply.String(user)
	}
	return wire.OK
}
