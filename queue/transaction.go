package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// writeRequest is operations that the writer sends in one transaction: all of them happen, or none.
type writeRequest struct {
	session  *framework.Session // the only one to send the request on; nil for any
	requires []precondition
	ops      []framework.Op
	items    []newItem
	with     []framework.Op // the caller's own; the error is framework.ErrRefused if the servers refuse one of these
	adds     int            // items that a bounded queue counts
	first    bool           // the producer is the first in line for room
	id       string         // of the item, to be refused as a duplicate; or ""

	// then is called once with the outcome, in the order of the requests, and must not block. The
	// results are those of ops. They are nil if the reply was lost and the marker has shown that
	// the request was applied.
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
// Its refusal fails the request with framework.ErrRefused.
func failCallersOp(r *writeRequest, index int) refusalHandler {
	return func(tx *framework.TxError) refusalHandling {
		own := &framework.TxError{Index: index, Op: tx.Op, Path: tx.Path, Err: tx.Err}
		return refuseOnly(r, fmt.Errorf("%w: %w", errRefused, own))
	}
}

func refuseOnly(r *writeRequest, err error) refusalHandling {
	return refusalHandling{fails: func(other *writeRequest) bool { return other == r }, err: err}
}

// failAll is a handler that fails the whole transaction.
func failAll(tx *framework.TxError) refusalHandling {
	return refusalHandling{repair: func(context.Context, *framework.Session) error { return tx }}
}

// writeMarker is the node <path>/writers/<uuid>, by which one writer finds out whether a
// transaction with a lost reply was applied. Each transaction sets the marker at the version that
// the last one left. After a lost reply, wasApplied sets it at the version from before: if that
// succeeds, the transaction was not applied and cannot be applied any more
// (docs/adr/0022-one-writer-and-its-marker.md).
type writeMarker struct {
	store   *store
	node    string // or ""
	next    string // a marker whose create may have been applied, with a lost reply; or ""
	version int32  // of the marker
	count   int64  // transactions so far
	session *framework.Session
}

var errMarkerGone = errors.New("the writer's marker is gone")

// isReady reports whether the marker exists, and has a child of this session. The servers remove a
// marker without children.
func (m *writeMarker) isReady(s *framework.Session) bool { return m.node != "" && m.session == s }

// makeMarkerWithChild makes the marker and its ephemeral child. It returns errMarkerGone if the
// servers have removed the marker.
func (m *writeMarker) makeMarkerWithChild(ctx context.Context, s *framework.Session) error {
	if m.node == "" {
		if err := m.makeMarker(ctx, s); err != nil {
			return err
		}
	}
	asked := time.Now()
	err := s.Create(ctx, m.childPath(s), nil, framework.Ephemeral)
	if errors.Is(err, framework.ErrNoNode) {
		return errMarkerGone
	}
	if err != nil && !errors.Is(err, framework.ErrNodeExists) {
		return err
	}
	stat, missing := s.Exists(ctx, m.childPath(s))
	if missing != nil {
		return missing
	}
	if err == nil || !m.store.clock.Known() { // a child that existed may be older than the question
		m.store.clock.AddStamp(stat.Ctime, asked)
	}
	m.session = s
	return nil
}

// makeMarker makes the marker in a transaction that checks the record: a queue that is being
// dropped gets no new markers.
func (m *writeMarker) makeMarker(ctx context.Context, s *framework.Session) error {
	writers := m.store.nodes.WritersDir
	if m.next == "" {
		m.next = znode.Join(writers, uuid.NewString())
	}
	for {
		record := framework.CheckOp(m.store.nodes.Path, m.store.record().Version)
		_, err := s.Multi(ctx, record, framework.CreateOp(m.next, nil, framework.Container))
		var refused *framework.TxError
		switch {
		case err == nil, errors.Is(err, framework.ErrNodeExists): // made before; the reply was lost
			m.node, m.next, m.version = m.next, "", 0
			return nil
		case !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth):
			return err
		case refused.Index == 1: // the directory of markers is missing
			_, err = s.Multi(ctx, record, framework.CreateOp(writers, nil, framework.Container))
			if err == nil || errors.Is(err, framework.ErrNodeExists) {
				continue
			}
		}
		m.store.stale.Store(true)
		if !recipe.IsConflict(err) {
			return err
		}
		if err := m.store.findOrMake(ctx, s); err != nil {
			return err
		}
	}
}

// markerOp is the operation of the next transaction that sets the marker.
func (m *writeMarker) markerOp() framework.Op {
	return framework.SetOp(m.node, strconv.AppendInt(nil, m.count+1, 10), m.version)
}

// neverOps are operations that the servers never apply together: they demand two versions of the
// marker.
func (m *writeMarker) neverOps() []framework.Op {
	return []framework.Op{framework.CheckOp(m.node, 0), framework.CheckOp(m.node, 1)}
}

// countApplied counts an applied transaction.
func (m *writeMarker) countApplied() {
	m.version++
	m.count++
}

// forgetMarker forgets the marker, which the servers have removed.
func (m *writeMarker) forgetMarker() { m.node = "" }

// wasApplied reports whether the last transaction was applied, after its reply was lost. If not, it
// cannot be applied any more. The error is framework.ErrNoNode if the marker is gone, or says why
// the outcome remains unknown.
func (m *writeMarker) wasApplied(ctx context.Context) (applied bool, err error) {
	err = recipe.OnSession(ctx, m.store.client, func(s *framework.Session) (err error) {
		applied, err = m.setMarker(ctx, s)
		return err
	}, failure.IsTransient)
	if err == nil && applied {
		m.count++
	}
	return applied, err
}

func (m *writeMarker) setMarker(ctx context.Context, s *framework.Session) (applied bool, err error) {
	data := fmt.Appendf(nil, "%d fence", m.count)
	stat, err := s.Set(ctx, m.node, data, m.version)
	if err == nil {
		m.version = stat.Version
		return false, nil
	}
	if !errors.Is(err, framework.ErrBadVersion) {
		return false, err
	}
	found, stat, err := s.Get(ctx, m.node) // an earlier try may have set it, with a lost reply
	if err != nil {
		return false, err
	}
	m.version = stat.Version
	return !bytes.Equal(found, data), nil
}

// removeMarker removes the marker after the last transaction.
func (m *writeMarker) removeMarker() {
	if m.node == "" || m.session == nil {
		return
	}
	child := framework.DeleteOp(m.childPath(m.session), framework.AnyVersion)
	err := m.writeUntilAnswered(child, framework.DeleteOp(m.node, framework.AnyVersion))
	if errors.Is(err, framework.ErrNotEmpty) { // a former session has not ended yet; the servers remove the rest then
		_ = m.writeUntilAnswered(child)
	} // else the servers remove both after the session
	m.node = ""
}

// writeUntilAnswered writes until the servers have answered, or the session has ended.
func (m *writeMarker) writeUntilAnswered(ops ...framework.Op) error {
	ctx, back := m.session.Context(), recipe.NewBackoff(m.store.client)
	for {
		_, err := m.session.Multi(ctx, ops...)
		if !errors.Is(err, framework.ErrSuspended) || back.Pause(ctx) != nil {
			return err
		}
	}
}

// childPath is the marker's child of a session.
func (m *writeMarker) childPath(s *framework.Session) string {
	return znode.Join(m.node, strconv.FormatInt(int64(s.ID()), 16))
}
