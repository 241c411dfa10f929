package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Op is one operation of a transaction.
type Op struct {
	name  string
	path  string
	size  int
	mode  Mode // of a create
	part  func(c *Client, full string) wire.MultiPart
	valid func() error // asked just before the transaction is sent; may be nil
}

// Names of operations by which others are told.
const (
	opCreate = "create"
	opDelete = "delete"
)

// OpResult is what one operation of a transaction returned.
type OpResult struct {
	// Path of a created node.
	Path string
	// Stat of a node after a set.
	Stat Stat
	// Err is why this operation was refused; nil for those before it.
	Err error
}

// CheckOp lets the transaction happen only if the node exists with this version, or AnyVersion.
func CheckOp(path string, version int32) Op {
	return Op{name: "check", path: path, part: func(_ *Client, full string) wire.MultiPart { return checkOpPart(full, version) }}
}

// CreateOp creates a node with the client's ACL; of a sequential one, OpResult.Path tells the name.
func CreateOp(path string, data []byte, mode Mode) Op {
	data = bytes.Clone(data) // the operation may be kept
	return Op{name: opCreate, path: path, size: len(data), mode: mode, part: func(c *Client, full string) wire.MultiPart {
		op, body := createRequest(full, data, mode, c.cfg.ACL)
		return wire.MultiPart{Op: op, Body: body}
	}}
}

// SetOp writes a node's data if it has this version, or AnyVersion.
func SetOp(path string, data []byte, version int32) Op {
	data = bytes.Clone(data) // the operation may be kept
	return Op{name: "set", path: path, size: len(data), part: func(_ *Client, full string) wire.MultiPart {
		return wire.MultiPart{Op: wire.OpSetData, Body: &wire.SetDataRequest{Path: full, Data: data, Version: version}}
	}}
}

// DeleteOp deletes a node if it has this version, or AnyVersion.
func DeleteOp(path string, version int32) Op {
	return Op{name: opDelete, path: path, part: func(_ *Client, full string) wire.MultiPart { return deleteOpPart(full, version) }}
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

// TxError is returned when a transaction was refused: nothing of it has happened.
type TxError struct {
	// Index of the operation that was refused.
	Index int
	// Op and Path of that operation.
	Op, Path string
	// Err is the reason, such as ErrBadVersion.
	Err error
}

func (e *TxError) Error() string {
	return fmt.Sprintf("transaction refused by operation %d, %s %s: %v", e.Index, e.Op, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *TxError) Unwrap() error { return e.Err }

// Multi runs a transaction: all operations or none. It waits for the connection, but is sent once
// only: when the connection is lost, or ctx or the session ends, before the answer, the error wraps ErrOutcomeUnknown, and ErrSuspended if it was the
// connection. A refusal is a *TxError.
func (s *Session) Multi(ctx context.Context, ops ...Op) ([]OpResult, error) {
	if err := s.checkOps(ops); err != nil {
		return nil, err
	}
	created, deleted := s.owned.sizesOf(ops)
	if err := s.owned.reserveFor(ctx, created, deleted); err != nil {
		return nil, Wrap("transaction", ops[0].path, err)
	}
	parts := s.wireParts(ops)
	rs, err := repeatUntilSent(ctx, s, func(a requester) ([]OpResult, error) {
		if err := checkConditions(ops); err != nil {
			return nil, err
		}
		return a.multi(parts).written()
	})
	switch {
	case err == nil:
		s.owned.countApplied(created, ops, rs)
	case errors.Is(err, ErrOutcomeUnknown):
		s.owned.countUnknown(created, ops)
	default:
		s.owned.settleReservation(created, 0)
	}
	var refused *TxError
	if errors.As(err, &refused) {
		return nil, refused
	}
	return s.opResults(ops, rs, err)
}

func (s *Session) wireParts(ops []Op) []wire.MultiPart {
	parts := make([]wire.MultiPart, len(ops))
	for i, o := range ops {
		parts[i] = o.part(s.client, s.client.ns.serverPath(o.path))
	}
	return parts
}

func checkOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpCheck, Body: &wire.NumberRequest{Path: full, Number: version}}
}

func deleteOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: full, Number: version}}
}

// opResults names the operation that was refused, if one was.
func (s *Session) opResults(ops []Op, rs []OpResult, err error) ([]OpResult, error) {
	if tx := firstRefused(ops, rs); tx != nil {
		return rs, tx
	}
	for i := range rs {
		if rs[i].Path != "" {
			rs[i].Path = s.client.ns.clientPath(rs[i].Path)
		}
	}
	return rs, Wrap("transaction", ops[0].path, err)
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
func (s *Session) checkOps(ops []Op) error {
	if len(ops) == 0 {
		return errors.New("framework: a transaction without operations")
	}
	total := 0
	for i, o := range ops {
		full, err := s.checkPath(o.path, o.size)
		if err != nil {
			return &TxError{Index: i, Op: o.name, Path: o.path, Err: err}
		}
		total += len(full) + o.size + partOverhead
	}
	return Wrap("transaction", ops[0].path, checkRequestSize(total))
}

// partOverhead is what a part of a request has beside its path and its data.
const partOverhead = 64

// checkRequestSize refuses a request of many parts that no server would take.
func checkRequestSize(total int) error {
	if total > maxRequest {
		return fmt.Errorf("%w: %d bytes, a server takes at most %d", ErrTooLarge, total, maxRequest)
	}
	return nil
}
