package zkserver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// maxTTL is the largest TTL in milliseconds that fits into a real node's owner field.
const maxTTL = 1<<40 - 1

// operationResult is the result of a write.
type operationResult struct {
	op   wire.Op
	code wire.Code
	path string // the path of the created node
	stat wire.Stat
}

func failedOperation(op wire.Op, code wire.Code) operationResult {
	return operationResult{op: op, code: code}
}

// applyOperation applies one write operation.
func (t *transaction) applyOperation(op wire.Op, body wire.Request) operationResult {
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
	return failedOperation(op, wire.MarshallingError)
}

// create checks a request in the same order as the real server, since that order
// decides which error a request with several mistakes gets.
func (t *transaction) create(op wire.Op, r *wire.CreateRequest) operationResult {
	if op == wire.OpCreateTTL && !r.HasTTL {
		return failedOperation(op, wire.MarshallingError)
	}
	if hasTTL(r.Flags) && !t.tree.ttlNodes {
		return failedOperation(op, wire.Unimplemented)
	}
	if !validCreateFlags(op, r) || !strings.Contains(r.Path, "/") || strings.IndexByte(r.Path, 0) >= 0 {
		return failedOperation(op, wire.BadArguments)
	}
	acl, code := resolveACL(r.ACL, t.ids)
	if code != wire.OK {
		return failedOperation(op, code)
	}
	parentPath, _ := wire.SplitPath(r.Path)
	parent := t.tree.findNode(parentPath)
	if parent == nil {
		return failedOperation(op, wire.NoNode)
	}
	if !isAllowed(parent.acl, wire.PermCreate, t.ids) {
		return failedOperation(op, wire.NoAuth)
	}
	path := r.Path
	if isSequential(r.Flags) {
		path = fmt.Sprintf("%s%010d", path, parent.childrenCreated)
	}
	switch {
	case wire.ValidatePath(path) != nil:
		return failedOperation(op, wire.BadArguments)
	case t.tree.findNode(path) != nil:
		return failedOperation(op, wire.NodeExists)
	case parent.kind == Ephemeral:
		return failedOperation(op, wire.NoChildrenForEphemerals)
	}
	if code := t.tree.checkQuota(path, int64(len(r.Data)), 1); code != wire.OK {
		return failedOperation(op, code)
	}
	n := t.newNode(op, r, path, acl)
	n.parent = parent
	t.insertNode(n)
	return operationResult{op: op, path: path, stat: n.stat()}
}

// validCreateFlags reports whether the flags are known, and whether the request has a valid TTL if,
// and only if, the flags require one.
func validCreateFlags(op wire.Op, r *wire.CreateRequest) bool {
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

func isSequential(flags int32) bool {
	return flags == wire.FlagSequential || flags == wire.FlagEphemeralSequential ||
		flags == wire.FlagPersistentSequentialTTL
}

// newNode makes a node that is not in the tree yet. The operation code, and not the flags,
// decides whether it is a container or a TTL node: a plain create with the container flag makes a
// persistent node, as on the real server.
func (t *transaction) newNode(op wire.Op, r *wire.CreateRequest, path string, acl []wire.ACL) *node {
	n := &node{path: path, data: bytes.Clone(r.Data), acl: acl,
		czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid, ctime: t.now, mtime: t.now}
	switch {
	case op == wire.OpCreateContainer:
		n.kind = Container
	case op == wire.OpCreateTTL:
		n.kind, n.owner = TTL, r.TTL
	case r.Flags == wire.FlagEphemeral || r.Flags == wire.FlagEphemeralSequential:
		n.kind, n.owner = Ephemeral, t.session
	}
	return n
}

func (t *transaction) delete(r *wire.NumberRequest) operationResult {
	if !strings.Contains(r.Path, "/") || strings.IndexByte(r.Path, 0) >= 0 || isSpecialPath(r.Path) {
		return failedOperation(wire.OpDelete, wire.BadArguments)
	}
	parentPath, _ := wire.SplitPath(r.Path)
	parent, n := t.tree.findNode(parentPath), t.tree.findNode(r.Path)
	switch {
	case parent == nil:
		return failedOperation(wire.OpDelete, wire.NoNode)
	case !isAllowed(parent.acl, wire.PermDelete, t.ids):
		return failedOperation(wire.OpDelete, wire.NoAuth)
	case n == nil:
		return failedOperation(wire.OpDelete, wire.NoNode)
	case !versionMatches(n.version, r.Number):
		return failedOperation(wire.OpDelete, wire.BadVersion)
	case len(n.children.nodes) > 0:
		return failedOperation(wire.OpDelete, wire.NotEmpty)
	}
	t.removeNode(n)
	return operationResult{op: wire.OpDelete}
}

func (t *transaction) setData(r *wire.SetDataRequest) operationResult {
	n, code := t.findPermitted(r.Path, wire.PermWrite)
	if code == wire.OK {
		code = t.tree.checkQuota(r.Path, int64(len(r.Data)-len(n.data)), 0)
	}
	if code == wire.OK && !versionMatches(n.version, r.Version) {
		code = wire.BadVersion
	}
	if code != wire.OK {
		return failedOperation(wire.OpSetData, code)
	}
	t.replaceData(n, bytes.Clone(r.Data))
	return operationResult{op: wire.OpSetData, stat: n.stat()}
}

func (t *transaction) setACL(r *wire.SetACLRequest) operationResult {
	if wire.ValidatePath(r.Path) != nil {
		return failedOperation(wire.OpSetACL, wire.BadArguments)
	}
	acl, code := resolveACL(r.ACL, t.ids)
	if code != wire.OK {
		return failedOperation(wire.OpSetACL, code)
	}
	n, code := t.findPermitted(r.Path, wire.PermAdmin)
	if code == wire.OK && !versionMatches(n.aversion, r.Version) {
		code = wire.BadVersion
	}
	if code != wire.OK {
		return failedOperation(wire.OpSetACL, code)
	}
	n.acl = acl
	n.aversion++
	return operationResult{op: wire.OpSetACL, stat: n.stat()}
}

func (t *transaction) check(r *wire.NumberRequest) operationResult {
	n, code := t.findPermitted(r.Path, wire.PermRead)
	if code == wire.OK && !versionMatches(n.version, r.Number) {
		code = wire.BadVersion
	}
	return operationResult{op: wire.OpCheck, code: code}
}

// findPermitted returns an existing node for which the client has a permission.
func (t *transaction) findPermitted(path string, perm int32) (*node, wire.Code) {
	if wire.ValidatePath(path) != nil {
		return nil, wire.BadArguments
	}
	n := t.tree.findNode(path)
	if n == nil {
		return nil, wire.NoNode
	}
	if !isAllowed(n.acl, perm, t.ids) {
		return nil, wire.NoAuth
	}
	return n, wire.OK
}

func versionMatches(version, asked int32) bool { return asked == wire.AnyVersion || asked == version }

// resolveACL checks the ACL of a request and returns the ACL to store. It drops duplicates, and
// replaces an entry with the scheme auth by entries for the client's identities.
func resolveACL(acl []wire.ACL, ids []wire.Identity) ([]wire.ACL, wire.Code) {
	if len(acl) == 1 && acl[0] == openACL[0] {
		return openACL, wire.OK // most nodes have this ACL, so they share one copy
	}
	var fixed, seen []wire.ACL
	for _, a := range acl {
		if slices.Contains(seen, a) {
			continue
		}
		seen = append(seen, a)
		expanded := expandACL(a, ids)
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

// applyAll applies the parts of a multi until one fails. The results of the parts before that one
// are OK, and those of the parts after it RuntimeInconsistency.
func (t *transaction) applyAll(parts []wire.MultiPart) (outcomes []operationResult, code wire.Code) {
	for _, p := range parts {
		op := operationOfPart(p)
		if code != wire.OK {
			outcomes = append(outcomes, failedOperation(op, wire.RuntimeInconsistency))
			continue
		}
		o := t.applyOperation(op, p.Body)
		code = o.code
		outcomes = append(outcomes, o)
	}
	return outcomes, code
}

// operationOfPart returns the operation of a part. In a multi the real server
// decides by the flags of a create, and not by its operation code.
func operationOfPart(p wire.MultiPart) wire.Op {
	create, isCreate := p.Body.(*wire.CreateRequest)
	switch {
	case !isCreate:
		return p.Op
	case create.Flags == wire.FlagContainer:
		return wire.OpCreateContainer
	case create.Flags == wire.FlagTTL || create.Flags == wire.FlagPersistentSequentialTTL:
		return wire.OpCreateTTL
	default:
		return wire.OpCreate
	}
}

// encodeReply appends the body of a successful write's answer.
func (o *operationResult) encodeReply(e *wire.Encoder) {
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

func encodePart(e *wire.Encoder, o operationResult, rolledBack bool) {
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
	o.encodeReply(e)
}
