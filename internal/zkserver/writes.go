package zkserver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// maxTTL is the largest TTL there is room for in a real node's owner field, in
// milliseconds.
const maxTTL = 1<<40 - 1

// outcome is what a write came to.
type outcome struct {
	op   wire.Op
	code wire.Code
	path string // of the node created
	stat wire.Stat
}

func failed(op wire.Op, code wire.Code) outcome { return outcome{op: op, code: code} }

// apply does one write operation.
func (t *txn) apply(op wire.Op, body wire.Request) outcome {
	switch r := body.(type) {
	case *wire.CreateRequest:
		return t.create(op, r)
	case *wire.SetDataRequest:
		return t.setData(r)
	case *wire.SetACLRequest:
		return t.setACL(r)
	case *wire.NumberRequest:
		if op == wire.OpDelete {
			return t.delete(r)
		}
		return t.check(r)
	}
	return failed(op, wire.MarshallingError)
}

// create checks in the order of the real server, which decides what error a
// request with several faults gets.
func (t *txn) create(op wire.Op, r *wire.CreateRequest) outcome {
	if op == wire.OpCreateTTL && !r.HasTTL {
		return failed(op, wire.MarshallingError)
	}
	if hasTTL(r.Flags) && !t.s.config.ExtendedTypes {
		return failed(op, wire.Unimplemented)
	}
	if !validMode(op, r) || !strings.Contains(r.Path, "/") || strings.IndexByte(r.Path, 0) >= 0 {
		return failed(op, wire.BadArguments)
	}
	acl, code := fixACL(r.ACL, t.ids)
	if code != wire.OK {
		return failed(op, code)
	}
	parentPath, _ := wire.SplitPath(r.Path)
	parent := t.s.tree.get(parentPath)
	if parent == nil {
		return failed(op, wire.NoNode)
	}
	if !allowed(parent.acl, wire.PermCreate, t.ids) {
		return failed(op, wire.NoAuth)
	}
	path := r.Path
	if sequential(r.Flags) {
		path = fmt.Sprintf("%s%010d", path, parent.creates)
	}
	switch {
	case wire.ValidatePath(path) != nil:
		return failed(op, wire.BadArguments)
	case t.s.tree.get(path) != nil:
		return failed(op, wire.NodeExists)
	case parent.kind == Ephemeral:
		return failed(op, wire.NoChildrenForEphemerals)
	}
	if code := t.checkQuota(path, int64(len(r.Data)), 1); code != wire.OK {
		return failed(op, code)
	}
	n := t.newNode(op, r, path, acl)
	n.parent = parent
	t.insert(n)
	return outcome{op: op, path: path, stat: n.stat()}
}

// validMode reports whether the flags are known and a TTL is given exactly when
// they ask for one.
func validMode(op wire.Op, r *wire.CreateRequest) bool {
	switch r.Flags {
	case wire.FlagTTL, wire.FlagPersistentSequentialTTL:
		return op == wire.OpCreateTTL && r.TTL > 0 && r.TTL <= maxTTL
	case wire.FlagPersistent, wire.FlagEphemeral, wire.FlagSequential, wire.FlagEphemeralSequential, wire.FlagContainer:
		return op != wire.OpCreateTTL
	}
	return false
}

func hasTTL(flags int32) bool {
	return flags == wire.FlagTTL || flags == wire.FlagPersistentSequentialTTL
}

func sequential(flags int32) bool {
	return flags == wire.FlagSequential || flags == wire.FlagEphemeralSequential || flags == wire.FlagPersistentSequentialTTL
}

// newNode makes the node, not yet in the tree. The operation decides about
// containers and TTLs: a plain create with the container flag makes a
// persistent node, as it does on the real server.
func (t *txn) newNode(op wire.Op, r *wire.CreateRequest, path string, acl []wire.ACL) *node {
	n := &node{path: path, data: bytes.Clone(r.Data), acl: acl,
		czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid, ctime: t.now, mtime: t.now}
	switch {
	case op == wire.OpCreateContainer:
		n.kind, n.home = Container, &t.s.tree.reapable
	case op == wire.OpCreateTTL:
		n.kind, n.home, n.owner = TTL, &t.s.tree.reapable, r.TTL
	case r.Flags == wire.FlagEphemeral || r.Flags == wire.FlagEphemeralSequential:
		n.kind, n.home, n.owner = Ephemeral, &t.session.ephemerals, t.session.id
	}
	return n
}

func (t *txn) delete(r *wire.NumberRequest) outcome {
	if !strings.Contains(r.Path, "/") || strings.IndexByte(r.Path, 0) >= 0 || isSpecial(r.Path) {
		return failed(wire.OpDelete, wire.BadArguments)
	}
	parentPath, _ := wire.SplitPath(r.Path)
	parent, n := t.s.tree.get(parentPath), t.s.tree.get(r.Path)
	switch {
	case parent == nil:
		return failed(wire.OpDelete, wire.NoNode)
	case !allowed(parent.acl, wire.PermDelete, t.ids):
		return failed(wire.OpDelete, wire.NoAuth)
	case n == nil:
		return failed(wire.OpDelete, wire.NoNode)
	case !matches(n.version, r.Number):
		return failed(wire.OpDelete, wire.BadVersion)
	case len(n.children.nodes) > 0:
		return failed(wire.OpDelete, wire.NotEmpty)
	}
	t.remove(n)
	return outcome{op: wire.OpDelete}
}

func (t *txn) setData(r *wire.SetDataRequest) outcome {
	n, code := t.target(r.Path, wire.PermWrite)
	if code == wire.OK {
		code = t.checkQuota(r.Path, int64(len(r.Data)-len(n.data)), 0)
	}
	if code == wire.OK && !matches(n.version, r.Version) {
		code = wire.BadVersion
	}
	if code != wire.OK {
		return failed(wire.OpSetData, code)
	}
	t.replace(n, bytes.Clone(r.Data))
	return outcome{op: wire.OpSetData, stat: n.stat()}
}

func (t *txn) setACL(r *wire.SetACLRequest) outcome {
	if wire.ValidatePath(r.Path) != nil {
		return failed(wire.OpSetACL, wire.BadArguments)
	}
	acl, code := fixACL(r.ACL, t.ids)
	if code != wire.OK {
		return failed(wire.OpSetACL, code)
	}
	n, code := t.target(r.Path, wire.PermAdmin)
	if code == wire.OK && !matches(n.aversion, r.Version) {
		code = wire.BadVersion
	}
	if code != wire.OK {
		return failed(wire.OpSetACL, code)
	}
	n.acl = acl
	n.aversion++
	return outcome{op: wire.OpSetACL, stat: n.stat()}
}

func (t *txn) check(r *wire.NumberRequest) outcome {
	n, code := t.target(r.Path, wire.PermRead)
	if code == wire.OK && !matches(n.version, r.Number) {
		code = wire.BadVersion
	}
	return outcome{op: wire.OpCheck, code: code}
}

// target finds an existing node that the asker has the permission on.
func (t *txn) target(path string, perm int32) (*node, wire.Code) {
	if wire.ValidatePath(path) != nil {
		return nil, wire.BadArguments
	}
	n := t.s.tree.get(path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !allowed(n.acl, perm, t.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func matches(version, asked int32) bool { return asked == wire.AnyVersion || asked == version }

// fixACL checks an ACL that is to be set, drops duplicates and expands the auth
// scheme to what the asker has authenticated as.
func fixACL(acl []wire.ACL, ids []wire.Identity) ([]wire.ACL, wire.Code) {
	if len(acl) == 1 && acl[0] == openACL[0] {
		return openACL, wire.OK // by far the most frequent one is kept once
	}
	var fixed, seen []wire.ACL
	for _, a := range acl {
		if slices.Contains(seen, a) {
			continue
		}
		seen = append(seen, a)
		expanded := expand(a, ids)
		if len(expanded) == 0 {
			return nil, wire.InvalidACL
		}
		fixed = append(fixed, expanded...)
	}
	if len(fixed) == 0 {
		return nil, wire.InvalidACL
	}
	return fixed, wire.OK
}
