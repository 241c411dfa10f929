package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// writeRequest is operations that the writer sends in one transaction: all of them happen, or none.
type writeRequest struct {
	session  *framework.Session // the only one to send the request on; nil for any
	requires []precondition
	ops      []framework.Op
	items    []newItem
	with     []framework.Op // the caller's own; the error is ErrRefused if the servers refuse one of these
	adds     int            // items that a bounded queue counts
	first    bool           // the producer is the first in line for room
	id       string         // of the item, to be refused as a duplicate; or ""

	// then is called once with the outcome, in the order of the requests, and must not block. The
	// results are those of ops. They are nil if the reply was lost and the fence has shown that the
	// request was applied.
	then func(results []framework.OpResult, err error)

	size  int
	state requestState // guarded by the writer's mutex
	// the index of ops[0] in the transaction assembled last; used only by the goroutine that writes
	firstOp int
}

// precondition is operations that several requests of a transaction have in common. The transaction
// contains them once. If the servers refuse one, all requests with the precondition fail.
// Implementations are comparable.
type precondition interface {
	ops() []framework.Op
}

// newItem is an item for the end of a chain, or for a later second.
type newItem struct {
	chain queuelayout.Chain
	delay time.Duration // 0: the item goes to chain
	due   time.Time     // by the ensemble's clock; the writer sets it when it first tries the request
	data  []byte
}

type requestState int

const (
	requestQueued requestState = iota
	requestSent
	requestDone
)

// ownResults are the results of the request's ops, of all results of its transaction.
func (r *writeRequest) ownResults(all []framework.OpResult) []framework.OpResult {
	return all[r.firstOp:][:len(r.ops):len(r.ops)]
}

// retryCopy copies a request that was refused, to be written again.
func (r *writeRequest) retryCopy() *writeRequest {
	return &writeRequest{session: r.session, requires: r.requires, ops: r.ops, items: r.items, with: r.with,
		adds: r.adds, id: r.id}
}

// opOverhead is the bytes of an operation beside its data: a path, an ACL, lengths.
const opOverhead = 200

func (r *writeRequest) measureSize() {
	r.size = len(r.ops) * opOverhead
	for _, item := range r.items {
		r.size += len(item.data) + opOverhead
	}
	for _, op := range r.with {
		r.size += primitives.Size(op) + opOverhead
	}
}

// itemsAdded is the number of items that requests add to a bounded queue.
func itemsAdded(requests []*writeRequest) (n int) {
	for _, r := range requests {
		n += r.adds
	}
	return n
}

// putTarget returns the chain or the delay of an item with a priority, and the operations that
// signal the item to consumers.
func putTarget(nodes *queuelayout.Layout, priority int, delay time.Duration) (newItem, []framework.Op) {
	switch {
	case delay > 0:
		return newItem{delay: delay}, []framework.Op{nodes.SignalDelayed()}
	case priority > 0:
		return newItem{chain: nodes.Priority(priority)}, []framework.Op{nodes.SignalLanes()}
	}
	return newItem{chain: nodes.Base}, nil
}

// transaction is the operations of several requests, each with a handler of its refusal.
type transaction struct {
	ops      []framework.Op
	handlers []refusalHandler
	created  []createdItem
}

// createdItem is an operation that creates an item.
type createdItem struct {
	op     int // its index
	chain  queuelayout.Chain
	second int64 // of a delayed item; else 0
}

// refusalHandler says what to do when the servers refuse a transaction because of one operation.
type refusalHandler func(*framework.TxError) refusalHandling

// refusalHandling is what to do with a refused transaction, before it is sent again.
type refusalHandling struct {
	fails  func(*writeRequest) bool // the requests that fail with err; nil if no request fails
	err    error
	repair func(context.Context, *framework.Session) error // nil if there is no need
}

func (t *transaction) addOp(op framework.Op, handler refusalHandler) {
	t.ops = append(t.ops, op)
	t.handlers = append(t.handlers, handler)
}

// failRequest is the handler of an operation of one request: its refusal fails that request.
func failRequest(r *writeRequest) refusalHandler {
	return func(tx *framework.TxError) refusalHandling { return refuseOnly(r, tx) }
}

// failRequiring is the handler of a precondition: its refusal fails all requests that have the
// precondition.
func failRequiring(p precondition) refusalHandler {
	return func(tx *framework.TxError) refusalHandling {
		return refusalHandling{fails: func(r *writeRequest) bool { return slices.Contains(r.requires, p) }, err: tx}
	}
}

// failCallersOp is the handler of one of the caller's own operations; index is its place in with.
// Its refusal fails the request with ErrRefused.
func failCallersOp(r *writeRequest, index int) refusalHandler {
	return func(tx *framework.TxError) refusalHandling {
		own := &framework.TxError{Index: index, Op: tx.Op, Path: tx.Path, Err: tx.Err}
		return refuseOnly(r, fmt.Errorf("%w: %w", ErrRefused, own))
	}
}

func refuseOnly(r *writeRequest, err error) refusalHandling {
	return refusalHandling{fails: func(other *writeRequest) bool { return other == r }, err: err}
}

// failAll is a handler that fails the whole transaction.
func failAll(tx *framework.TxError) refusalHandling {
	return refusalHandling{repair: func(context.Context, *framework.Session) error { return tx }}
}
