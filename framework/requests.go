package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// outcome is the outcome of a request.
type outcome[T any] struct {
	v    T
	zxid int64 // of the answer
	err  error
	lost bool // it was queued and has no answer: the servers may have executed it, or may still execute it
}

// asRead returns the outcome of a read.
func (o outcome[T]) asRead() (T, error) { return o.v, o.err }

// asWrite returns the outcome of a write, with an error that says so if it is unknown.
func (o outcome[T]) asWrite() (T, error) {
	if o.lost {
		return o.v, fmt.Errorf("%w: %w", ErrOutcomeUnknown, o.err)
	}
	return o.v, o.err
}

// future receives the one outcome of a request.
type future[T any] chan outcome[T]

// newRequest prepares a request. decode runs on the goroutine that reads the connection, and must
// copy the bytes that it keeps.
func newRequest[T any](op wire.Op, body wire.Request, decode func(*wire.Decoder) T) (*link.Call, future[T]) {
	f := make(future[T], 1)
	return &link.Call{Op: op, Body: body, Done: func(r link.Reply) { f <- decodeAnswer(r, decode) }}, f
}

// decodeAnswer turns an answer into an outcome.
func decodeAnswer[T any](r link.Reply, decode func(*wire.Decoder) T) outcome[T] {
	o := outcome[T]{zxid: r.Zxid, err: replyError(r), lost: errors.Is(r.Err, link.ErrDown)}
	if o.err != nil {
		return o
	}
	d := wire.NewDecoder(r.Body)
	o.v = decode(&d)
	if d.Err() != nil {
		o.err = fmt.Errorf("zookeeper: %w", d.Err())
	}
	return o
}

// waitForOutcome waits for a request's outcome until ctx or the session ends.
func waitForOutcome[T any](ctx context.Context, c *caller, f future[T]) outcome[T] {
	select {
	case o := <-f:
		return o
	case <-ctx.Done():
		return outcome[T]{err: c.callEnded(ctx), lost: true}
	case <-c.session.Done():
		return outcome[T]{err: context.Cause(c.session), lost: true}
	}
}

// requester sends the requests of one call, with this project's types and errors. When its context
// ends, the servers may still execute a request. A lost connection is ErrSuspended; the Session
// decides whether the session is lost.
type requester struct {
	ctx    context.Context
	caller *caller
	urgent bool // ahead of the queued requests
}

func sendAndWait[T any](a requester, op wire.Op, body wire.Request, decode func(*wire.Decoder) T) outcome[T] {
	call, f := newRequest(op, body, decode)
	call.Urgent = a.urgent
	a.caller.sendRequests(call)
	return waitForOutcome(a.ctx, a.caller, f)
}

func (a requester) addAuth(c Credential) error {
	_, err := sendAndWait(a, wire.OpAuth, &wire.AuthRequest{Scheme: c.Scheme, Auth: c.Auth}, ignoreAnswer).asRead()
	return err
}

func (a requester) get(path string) (readResult, error) {
	return sendAndWait(a, wire.OpGetData, &wire.WatchRequest{Path: path}, decodeData).asRead()
}

func (a requester) exists(path string) (Stat, error) {
	r, err := sendAndWait(a, wire.OpExists, &wire.WatchRequest{Path: path}, decodeStatOnly).asRead()
	return r.stat, err
}

func (a requester) children(path string) (readResult, error) {
	return sendAndWait(a, wire.OpGetChildren2, &wire.WatchRequest{Path: path}, decodeNames).asRead()
}

func (a requester) acl(path string) (aclResult, error) {
	return sendAndWait(a, wire.OpGetACL, &wire.PathRequest{Path: path}, decodeACL).asRead()
}

func (a requester) create(path string, data []byte, mode Mode, acl []ACL) error {
	op, body := createRequest(path, data, mode, acl)
	_, err := sendAndWait(a, op, body, decodePath).asWrite()
	return err
}

func (a requester) set(path string, data []byte, version int32) (Stat, error) {
	r, err := sendAndWait(a, wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: version},
		decodeStatOnly).asWrite()
	return r.stat, err
}

func (a requester) setACL(path string, acl []ACL) error {
	_, err := sendAndWait(a, wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: wireACL(acl), Version: AnyVersion},
		decodeStatOnly).asWrite()
	return err
}

func (a requester) delete(path string, version int32) error {
	_, err := sendAndWait(a, wire.OpDelete, &wire.NumberRequest{Path: path, Number: version}, ignoreAnswer).asWrite()
	if err == nil || errors.Is(err, ErrNoNode) {
		a.caller.deleted(path)
	}
	return err
}

// sync sends a transaction without effect: a check of a node, which may also be missing or
// forbidden. Servers apply all transactions in one order, so an answer shows that this server has
// applied everything that was committed before.
func (a requester) sync(path string) error {
	rs, err := a.multi([]wire.MultiPart{checkOpPart(path, AnyVersion)}).asRead()
	return errorUnlessOrdered(rs, err)
}

// zkSync sends ZooKeeper's own sync. A leader may answer it before it has applied what a follower
// has acknowledged.
func (a requester) zkSync(path string) error {
	_, err := sendAndWait(a, wire.OpSync, &wire.PathRequest{Path: path}, decodePath).asRead()
	return err
}

// errorUnlessOrdered returns nil for a transaction that was refused because of one of its
// operations, since the ensemble has ordered it like any other. It returns the error of a
// transaction that was not run, and of one that was refused because its session has expired or has
// moved to another server.
func errorUnlessOrdered(rs []OpResult, err error) error {
	if indexOfRefused(rs) >= 0 && !errors.Is(err, ErrSuspended) {
		return nil
	}
	return err
}

func checkOpPart(full string, version int32) wire.MultiPart {
	return wire.MultiPart{Op: wire.OpCheck, Body: &wire.NumberRequest{Path: full, Number: version}}
}

// multi runs a transaction. After a refusal, the results show which operation was refused.
func (a requester) multi(parts []wire.MultiPart) outcome[[]OpResult] {
	o := sendAndWait(a, wire.OpMulti, &wire.MultiRequest{Parts: parts}, decodeResults)
	if o.err == nil {
		o.err = resultsError(o.v, len(parts))
	}
	for i := range o.v {
		if o.err == nil {
			o.v[i].Zxid = o.zxid
		}
	}
	return o
}

// resultsError is the error of the operation that was refused. Without a refusal it is nil, unless
// the answer has not a result for each operation.
func resultsError(rs []OpResult, operations int) error {
	if err := refusalError(rs); err != nil {
		return err
	}
	if len(rs) != operations {
		return fmt.Errorf("zookeeper: %d results of a transaction of %d operations", len(rs), operations)
	}
	return nil
}

// refusalError is the error of the operation that was refused, or nil.
func refusalError(rs []OpResult) error {
	if i := indexOfRefused(rs); i >= 0 {
		return rs[i].Err
	}
	return nil
}

// indexOfRefused returns the index of the operation that was refused, or -1. The servers have not
// looked at the operations behind it.
func indexOfRefused(rs []OpResult) int {
	return slices.IndexFunc(rs, func(r OpResult) bool { return r.Err != nil })
}

func createRequest(path string, data []byte, mode Mode, acl []ACL) (wire.Op, *wire.CreateRequest) {
	op := wire.OpCreate
	if mode == Container {
		op = wire.OpCreateContainer
	}
	return op, &wire.CreateRequest{Path: path, Data: data, Flags: int32(mode), ACL: wireACL(acl)}
}

// readResult is what a read returned.
type readResult struct {
	data  []byte
	names []string
	stat  Stat
	zxid  int64 // of a read that sets a watch: the newest transaction that the server knew, also for a missing node
}

// aclResult is what a read of an ACL returned.
type aclResult struct {
	acl  []ACL
	stat Stat
}

func ignoreAnswer(*wire.Decoder) struct{} { return struct{}{} }

func decodePath(d *wire.Decoder) string { return d.String() }

func decodeData(d *wire.Decoder) (r readResult) {
	r.data = bytes.Clone(d.Buffer())
	r.stat = decodeStat(d)
	return r
}

func decodeNames(d *wire.Decoder) (r readResult) {
	r.names = d.Strings()
	r.stat = decodeStat(d)
	return r
}

func decodeACL(d *wire.Decoder) (r aclResult) {
	for _, a := range d.ACLs() {
		r.acl = append(r.acl, ACL{Perms: Perms(a.Perms), Scheme: a.Scheme, ID: a.ID})
	}
	r.stat = decodeStat(d)
	return r
}

func decodeStatOnly(d *wire.Decoder) readResult { return readResult{stat: decodeStat(d)} }

func decodeStat(d *wire.Decoder) Stat {
	var s wire.Stat
	s.Decode(d)
	return Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid,
		Ctime: stored.Time(time.UnixMilli(s.Ctime)), Mtime: stored.Time(time.UnixMilli(s.Mtime)),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: SessionID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// decodeResults reads a transaction's results. An answer that is not whole has none.
func decodeResults(d *wire.Decoder) (rs []OpResult) {
	for {
		var h wire.MultiHeader
		if h.Decode(d); d.Err() != nil {
			return nil
		}
		if h.Done {
			return rs
		}
		var r OpResult
		switch h.Op {
		case wire.OpCreate:
			r.Path = d.String()
		case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
			r.Path, r.Stat = d.String(), decodeStat(d)
		case wire.OpSetData:
			r.Stat = decodeStat(d)
		case wire.OpError:
			r.Err = codeError(wire.Code(d.Int()))
		}
		rs = append(rs, r)
	}
}

var codeErrors = map[wire.Code]error{
	wire.NoNode: ErrNoNode, wire.NodeExists: ErrNodeExists, wire.BadVersion: ErrBadVersion, wire.NotEmpty: ErrNotEmpty,
	wire.NoAuth: ErrNoAuth, wire.AuthFailed: ErrAuthFailed, wire.SessionClosedNeedsSASL: ErrAuthFailed,
	wire.ThrottledOp: ErrOverloaded, wire.QuotaExceeded: ErrQuotaExceeded,
	wire.InvalidACL:     failure.KindOf(ErrInvalid, "the servers refuse the ACL"),
	wire.ConnectionLoss: ErrSuspended, wire.SessionMoved: ErrSuspended, wire.SessionExpired: ErrSuspended,
}

// codeError returns the error of a server's code. The error of an unknown code names the code, and
// is not transient.
func codeError(code wire.Code) error {
	if code == wire.OK {
		return nil
	}
	if err, ok := codeErrors[code]; ok {
		return err
	}
	return fmt.Errorf("zookeeper: error %d (%s)", int32(code), code)
}

// Errors of requests that were not sent.
var (
	errNotSent   = fmt.Errorf("%w before the request was sent", ErrSuspended)
	errQueueFull = errors.New("the queue of requests to the server is full")
)

func replyError(r link.Reply) error {
	switch {
	case errors.Is(r.Err, link.ErrNotSent):
		return errNotSent
	case errors.Is(r.Err, link.ErrFull):
		return errQueueFull
	case errors.Is(r.Err, link.ErrTooLong):
		return fmt.Errorf("%w: the answer has more than %d bytes", ErrTooLarge, link.MaxAnswer)
	case r.Err != nil:
		return ErrSuspended
	}
	return codeError(r.Code)
}

func wireACL(acl []ACL) []wire.ACL {
	out := make([]wire.ACL, len(acl))
	for i, a := range acl {
		out[i] = wire.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return out
}

// caller sends a session's requests: it waits for the connection, repeats what may be repeated,
// and maps the client's paths to the servers'.
type caller struct {
	transport *link.Transport
	ns        namespace
	cfg       Config

	session       context.Context        // done when the session has ended
	whenConnected func() <-chan struct{} // closed while the session is connected
	sessionID     func() SessionID
	deleted       func(full ...string) // called with nodes that the servers have deleted, or do not have
	requests      *atomic.Int64        // counts them, for the client
}

// sendRequests queues requests for the connection, and counts them.
func (c *caller) sendRequests(calls ...*link.Call) {
	c.requests.Add(int64(len(calls)))
	c.transport.Offer(calls...)
}

// callEnded returns why a call has ended whose context is done: the session's end comes first,
// otherwise it is the context's.
func (c *caller) callEnded(ctx context.Context) error {
	if c.session.Err() != nil {
		return context.Cause(c.session)
	}
	return failure.Ended(ctx)
}

// waitConnected waits until the session is connected.
func (c *caller) waitConnected(ctx context.Context) error {
	if ctx.Err() != nil {
		return c.callEnded(ctx)
	}
	select {
	case <-c.whenConnected():
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// repeatUntilKnown runs f, which must be safe to repeat, until its outcome is known: each time that
// the connection is lost, it waits for the next one.
func repeatUntilKnown[T any](ctx context.Context, c *caller, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, c, f, func(err error) bool { return errors.Is(err, ErrSuspended) || wasNotExecuted(err) })
}

// repeatUntilSent runs f until its request was sent. It repeats a request that was not sent, or
// that the servers have throttled.
func repeatUntilSent[T any](ctx context.Context, c *caller, f func(a requester) (T, error)) (T, error) {
	return repeatWhile(ctx, c, f, wasNotExecuted)
}

// wasNotExecuted reports whether a request has certainly not been executed and may be sent again.
func wasNotExecuted(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, errQueueFull) || errors.Is(err, ErrOverloaded)
}

// repeatWhile runs f while its error is repeatable, until ctx or the session ends.
func repeatWhile[T any](ctx context.Context, c *caller, f func(a requester) (T, error),
	repeatable func(error) bool) (T, error) {
	var zero T
	back := backoff.New(c.cfg.RetryBase, c.cfg.RetryMax)
	for tries := 1; ; tries++ {
		if err := c.waitConnected(ctx); err != nil {
			return zero, err
		}
		v, err := f(requester{ctx: ctx, caller: c})
		if !repeatable(err) {
			return v, err
		}
		switch {
		case errors.Is(err, errQueueFull):
			err = c.waitForQueueRoom(ctx)
		case tries == 1 && errors.Is(err, ErrSuspended): // most likely the connection has just been replaced
			err = nil
		default:
			err = c.pauseBeforeRetry(ctx, back)
		}
		if err != nil {
			return zero, err
		}
	}
}

// waitForQueueRoom waits until the send queue has room, or the connection has ended.
func (c *caller) waitForQueueRoom(ctx context.Context) error {
	select {
	case <-c.transport.Room():
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// pauseBeforeRetry waits before the next try.
func (c *caller) pauseBeforeRetry(ctx context.Context, back *backoff.Backoff) error {
	timer := time.NewTimer(back.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return c.callEnded(ctx)
	case <-c.session.Done():
		return context.Cause(c.session)
	}
}

// maxRequest is the largest request that a server accepts by default (jute.maxbuffer), less its
// header.
const maxRequest = 0xfffff - 1024

// checkPath refuses bad paths and requests that are too large for a server, and returns the
// server's path.
func (c *caller) checkPath(path string, size int) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", err
	}
	full := c.ns.serverPath(path)
	if total := len(full) + size; total > maxRequest {
		return "", fmt.Errorf("%w: path and data have %d bytes, a server takes at most %d", ErrTooLarge,
			total, maxRequest)
	}
	return full, nil
}

// partOverhead is the size of a part of a request without its path and data.
const partOverhead = 64

// checkRequestSize refuses a request of many parts that is too large for a server.
func checkRequestSize(total int) error {
	if total > maxRequest {
		return fmt.Errorf("%w: the request has %d bytes, a server takes at most %d", ErrTooLarge, total, maxRequest)
	}
	return nil
}
