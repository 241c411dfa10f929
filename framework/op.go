package framework

import (
	"bytes"
	"errors"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Op is one operation of a transaction.
type Op struct {
	name  string
	path  string
	size  int
	mode  Mode // of a create
	part  func(acl []ACL, full string) wire.MultiPart
	valid func() error // asked just before the transaction is sent; may be nil
}

// Names of operations by which others are told.
const (
	opCreate = "create"
	opDelete = "delete"
)

// CheckOp lets the transaction happen only if the node exists with this version, or AnyVersion.
func CheckOp(path string, version int32) Op {
	return Op{name: "check", path: path, part: func(_ []ACL, full string) wire.MultiPart { return checkOpPart(full, version) }}
}

// CreateOp creates a node with the client's ACL; of a sequential one, OpResult.Path tells the name.
func CreateOp(path string, data []byte, mode Mode) Op {
	data = bytes.Clone(data) // the operation may be kept
	return Op{name: opCreate, path: path, size: len(data), mode: mode, part: func(acl []ACL, full string) wire.MultiPart {
		op, body := createRequest(full, data, mode, acl)
		return wire.MultiPart{Op: op, Body: body}
	}}
}

// SetOp writes a node's data if it has this version, or AnyVersion.
func SetOp(path string, data []byte, version int32) Op {
	data = bytes.Clone(data) // the operation may be kept
	return Op{name: "set", path: path, size: len(data), part: func(_ []ACL, full string) wire.MultiPart {
		return wire.MultiPart{Op: wire.OpSetData, Body: &wire.SetDataRequest{Path: full, Data: data, Version: version}}
	}}
}

// DeleteOp deletes a node if it has this version, or AnyVersion.
func DeleteOp(path string, version int32) Op {
	return Op{name: opDelete, path: path, part: func(_ []ACL, full string) wire.MultiPart { return deleteOpPart(full, version) }}
}

// When returns the operation with a condition of this process's own: the transaction is refused with
// the condition's error before it is sent. It may be asked more than once.
func (o Op) When(valid func() error) Op {
	o.valid = valid
	return o
}

// Path is the operation's path.
func (o Op) Path() string { return o.path }

// Size is how many bytes the operation's path and data have.
func (o Op) Size() int { return len(o.path) + o.size }

func (t *transport) wireParts(ops []Op) []wire.MultiPart {
	parts := make([]wire.MultiPart, len(ops))
	for i, o := range ops {
		parts[i] = o.part(t.cfg.ACL, t.ns.serverPath(o.path))
	}
	return parts
}

func checkOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpCheck, Body: &wire.NumberRequest{Path: full, Number: version}}
}

func deleteOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: full, Number: version}}
}

// firstRefused names the first operation that was refused, or is nil.
func firstRefused(ops []Op, rs []OpResult) *TxError {
	for i := range min(len(rs), len(ops)) {
		if rs[i].Err != nil {
			return &TxError{Index: i, Op: ops[i].name, Path: ops[i].path, Err: rs[i].Err}
		}
	}
	return nil
}

// checkConditions asks the operations' conditions of this process's own.
func checkConditions(ops []Op) error {
	for i, o := range ops {
		if o.valid == nil {
			continue
		}
		if err := o.valid(); err != nil {
			return &TxError{Index: i, Op: o.name, Path: o.path, Err: err}
		}
	}
	return nil
}

// checkOps refuses a transaction that no server would take.
func (t *transport) checkOps(ops []Op) error {
	if len(ops) == 0 {
		return errors.New("framework: a transaction without operations")
	}
	total := 0
	for i, o := range ops {
		full, err := t.checkPath(o.path, o.size)
		if err != nil {
			return &TxError{Index: i, Op: o.name, Path: o.path, Err: err}
		}
		total += len(full) + o.size + partOverhead
	}
	return Wrap("transaction", ops[0].path, checkRequestSize(total))
}
