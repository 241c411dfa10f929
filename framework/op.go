package framework

import (
	"bytes"
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Op is one operation of a transaction: CheckOp, CreateOp, SetOp and DeleteOp make it.
type Op = primitives.Op

// CheckOp lets the transaction happen only if the node exists with this version, or AnyVersion.
func CheckOp(path string, version int32) Op {
	return primitives.NewOp(primitives.OpFields{Kind: primitives.OpCheck, Path: path, Version: version})
}

// CreateOp creates a node with the client's ACL. OpResult.Path is its path, with the number of a
// sequential node.
func CreateOp(path string, data []byte, mode Mode) Op {
	// may be kept
	return primitives.NewOp(primitives.OpFields{Kind: primitives.OpCreate, Path: path, Data: bytes.Clone(data),
		Mode: int32(mode)})
}

// SetOp writes a node's data if it has this version, or AnyVersion.
func SetOp(path string, data []byte, version int32) Op {
	// may be kept
	return primitives.NewOp(primitives.OpFields{Kind: primitives.OpSet, Path: path, Data: bytes.Clone(data),
		Version: version})
}

// DeleteOp deletes a node if it has this version, or AnyVersion.
func DeleteOp(path string, version int32) Op {
	return primitives.NewOp(primitives.OpFields{Kind: primitives.OpDelete, Path: path, Version: version})
}

func (c *caller) wireParts(ops []Op) []wire.MultiPart {
	parts := make([]wire.MultiPart, len(ops))
	for i := range ops {
		parts[i] = c.wirePart(primitives.Fields(ops[i]))
	}
	return parts
}

func (c *caller) wirePart(o primitives.OpFields) wire.MultiPart {
	full := c.ns.serverPath(o.Path)
	switch o.Kind {
	case primitives.OpCreate:
		op, body := createRequest(full, o.Data, Mode(o.Mode), c.cfg.ACL)
		return wire.MultiPart{Op: op, Body: body}
	case primitives.OpSet:
		return wire.MultiPart{Op: wire.OpSetData,
			Body: &wire.SetDataRequest{Path: full, Data: o.Data, Version: o.Version}}
	case primitives.OpDelete:
		return deleteOpPart(full, o.Version)
	default:
		return checkOpPart(full, o.Version)
	}
}

func deleteOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: full, Number: version}}
}

// refusedOp is the error of an operation that was refused, which refuses its transaction.
func refusedOp(ops []Op, i int, reason error) *TxError {
	o := primitives.Fields(ops[i])
	return &TxError{Index: i, Op: string(o.Kind), Path: o.Path, Err: reason}
}

// firstRefused is the error of the first operation that was refused, or nil.
func firstRefused(ops []Op, rs []OpResult) *TxError {
	for i := range min(len(rs), len(ops)) {
		if rs[i].Err != nil {
			return refusedOp(ops, i, rs[i].Err)
		}
	}
	return nil
}

// checkConditions checks the conditions in this process that operations have, such as those of
// guards.
func checkConditions(ops []Op) error {
	for i := range ops {
		valid := primitives.Fields(ops[i]).Valid
		if valid == nil {
			continue
		}
		if err := valid(); err != nil {
			return refusedOp(ops, i, err)
		}
	}
	return nil
}

// checkOps refuses a transaction that no server would take.
func (c *caller) checkOps(ops []Op) error {
	if len(ops) == 0 {
		return errors.New("framework: a transaction needs at least one operation")
	}
	total := 0
	for i := range ops {
		o := primitives.Fields(ops[i])
		full, err := c.checkPath(o.Path, len(o.Data))
		if err != nil {
			return refusedOp(ops, i, err)
		}
		total += len(full) + len(o.Data) + partOverhead
	}
	return failure.Wrap("transaction", primitives.Path(ops[0]), checkRequestSize(total))
}
