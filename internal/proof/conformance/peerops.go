package conformance

import (
	"os"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

var errTimeout = os.ErrDeadlineExceeded

// The bodies of requests.

func creation(path, data string, flags int32) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: wire.WorldACL(wire.PermAll), Flags: flags}
}

func creationTTL(path string, flags int32, ttl int64) *wire.CreateRequest {
	r := creation(path, "", flags)
	r.HasTTL, r.TTL = true, ttl
	return r
}

func at(path string) *wire.PathRequest             { return &wire.PathRequest{Path: path} }
func look(path string) *wire.WatchRequest          { return &wire.WatchRequest{Path: path} }
func watch(path string) *wire.WatchRequest         { return &wire.WatchRequest{Path: path, Watch: true} }
func num(path string, n int32) *wire.NumberRequest { return &wire.NumberRequest{Path: path, Number: n} }
func anyVersion(path string) *wire.NumberRequest   { return num(path, wire.AnyVersion) }

func setting(path, data string, version int32) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}
}

func aclSetting(path string, acl []wire.ACL, version int32) *wire.SetACLRequest {
	return &wire.SetACLRequest{Path: path, ACL: acl, Version: version}
}

// parts returns the body of a multi, which has an operation and a body for each part.
func parts(p ...wire.MultiPart) *wire.MultiRequest { return &wire.MultiRequest{Parts: p} }

func part(op wire.Op, body wire.Request) wire.MultiPart { return wire.MultiPart{Op: op, Body: body} }

// The events.

func created(path string) wire.WatchEvent { return event(wire.EventNodeCreated, path) }
func deleted(path string) wire.WatchEvent { return event(wire.EventNodeDeleted, path) }
func changed(path string) wire.WatchEvent { return event(wire.EventNodeDataChanged, path) }
func children(path string) wire.WatchEvent {
	return event(wire.EventNodeChildrenChanged, path)
}

func event(typ wire.EventType, path string) wire.WatchEvent {
	return wire.WatchEvent{Type: typ, State: wire.StateSyncConnected, Path: path}
}

// The requests that many tests need. All must succeed.

func (p *peer) create(path, data string, flags int32) string {
	p.t.Helper()
	r := p.doOK(wire.OpCreate, creation(path, data, flags))
	return r.body.String()
}

func (p *peer) set(path, data string) {
	p.t.Helper()
	p.doOK(wire.OpSetData, setting(path, data, wire.AnyVersion))
}

func (p *peer) delete(path string) {
	p.t.Helper()
	p.doOK(wire.OpDelete, anyVersion(path))
}

// sync lets this server apply all transactions that are committed, by one without effect:
// ZooKeeper's own sync does not do that on the leader.
func (p *peer) sync(path string) {
	p.t.Helper()
	p.doOK(wire.OpMulti, parts(part(wire.OpCheck, anyVersion(path))))
}

// exists returns false if there is no such node.
func (p *peer) exists(path string) (stat wire.Stat, is bool) {
	p.t.Helper()
	r := p.do(wire.OpExists, look(path))
	if r.Err == wire.NoNode {
		return stat, false
	}
	require.Equal(p.t, wire.OK, r.Err, "exists %s", path)
	return r.stat(p), true
}

func (p *peer) stat(path string) wire.Stat {
	p.t.Helper()
	stat, is := p.exists(path)
	require.True(p.t, is, "no node %s", path)
	return stat
}

func (p *peer) children(path string) []string {
	p.t.Helper()
	r := p.doOK(wire.OpGetChildren, look(path))
	return r.body.Strings()
}

func (p *peer) auth(scheme, credentials string) wire.Code {
	p.t.Helper()
	p.sendAs(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)})
	return p.answer(wire.XidAuth).Err
}

// deleteTree deletes a node and all nodes below it. Other clients may delete some of them at the
// same time.
func (p *peer) deleteTree(path string) {
	p.t.Helper()
	r := p.do(wire.OpGetChildren, look(path))
	if r.Err == wire.OK {
		p.deleteAll(path, r.body.Strings())
	}
	code := p.code(wire.OpDelete, anyVersion(path))
	require.Contains(p.t, []wire.Code{wire.OK, wire.NoNode}, code, "delete %s", path)
}

// deleteAll sends all deletes before it reads the answers, because most nodes have no children.
func (p *peer) deleteAll(dir string, names []string) {
	p.t.Helper()
	xids := make([]int32, len(names))
	for i, name := range names {
		xids[i] = p.send(wire.OpDelete, anyVersion(wire.JoinPath(dir, name)))
	}
	var parents []string
	for i, name := range names {
		if p.answer(xids[i]).Err == wire.NotEmpty {
			parents = append(parents, name)
		}
	}
	for _, name := range parents {
		p.deleteTree(wire.JoinPath(dir, name))
	}
}

// stat reads a Stat from the reply.
func (r *reply) stat(p *peer) (s wire.Stat) {
	p.t.Helper()
	s.Decode(&r.body)
	require.NoError(p.t, r.body.Err())
	return s
}

// result is one part of a multi's answer.
type result struct {
	op   wire.Op
	code wire.Code
	path string
	data string
	kids []string
	stat wire.Stat
}

// results reads all results of a multi's answer.
func (r *reply) results(p *peer) (all []result) {
	p.t.Helper()
	for {
		var h wire.MultiHeader
		h.Decode(&r.body)
		require.NoError(p.t, r.body.Err())
		if h.Done {
			require.Equal(p.t, wire.MultiEnd, h)
			require.Zero(p.t, r.body.Len())
			return all
		}
		all = append(all, r.result(h))
	}
}

func (r *reply) result(h wire.MultiHeader) result {
	one := result{op: h.Op, code: h.Err}
	d := &r.body
	switch h.Op {
	case wire.OpError:
		one.code = wire.Code(d.Int())
	case wire.OpCreate:
		one.path = d.String()
	case wire.OpCreate2:
		one.path = d.String()
		one.stat.Decode(d)
	case wire.OpSetData:
		one.stat.Decode(d)
	case wire.OpGetData:
		one.data = d.String()
		one.stat.Decode(d)
	case wire.OpGetChildren:
		one.kids = d.Strings()
	}
	return one
}
