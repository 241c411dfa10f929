package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// outcome is what became of a request.
type outcome[T any] struct {
	v    T
	zxid int64
	err  error
	lost bool // it was queued and has no answer: the servers may have carried it out, or may do so yet
}

// read returns the outcome of a read.
func (o outcome[T]) read() (T, error) { return o.v, o.err }

// written returns the outcome of a write, with an error that says so if it is unknown.
func (o outcome[T]) written() (T, error) {
	if o.lost {
		return o.v, fmt.Errorf("%w: %w", ErrOutcomeUnknown, o.err)
	}
	return o.v, o.err
}

// future is a request under way: it gets one outcome.
type future[T any] chan outcome[T]

// newRequest prepares a request. decode runs on the goroutine that reads the connection, and must copy what it
// keeps.
func newRequest[T any](op wire.Op, body wire.Request, decode func(*wire.Decoder) T) (*link.Call, future[T]) {
	f := make(future[T], 1)
	return &link.Call{Op: op, Body: body, Done: func(r link.Reply) { f <- readAnswer(r, decode) }}, f
}

// readAnswer reads an answer.
func readAnswer[T any](r link.Reply, decode func(*wire.Decoder) T) outcome[T] {
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

// waitForOutcome waits for a request's outcome, for no longer than ctx and the session last.
func waitForOutcome[T any](ctx context.Context, t *transport, f future[T]) outcome[T] {
	select {
	case o := <-f:
		return o
	case <-ctx.Done():
		return outcome[T]{err: t.callEnded(ctx), lost: true}
	case <-t.session.Done():
		return outcome[T]{err: context.Cause(t.session), lost: true}
	}
}

// requester asks the servers on behalf of one call. What its context leaves behind may still be carried out.
// A lost connection is ErrSuspended: whether the session is lost is for the Session to say.
type requester struct {
	ctx    context.Context
	t      *transport
	urgent bool // ahead of what others have queued
}

func ask[T any](a requester, op wire.Op, body wire.Request, decode func(*wire.Decoder) T) outcome[T] {
	call, f := newRequest(op, body, decode)
	call.Urgent = a.urgent
	a.t.mon.Offer(call)
	return waitForOutcome(a.ctx, a.t, f)
}

func (a requester) addAuth(c Credential) error {
	_, err := ask(a, wire.OpAuth, &wire.AuthRequest{Scheme: c.Scheme, Auth: c.Auth}, ignoreAnswer).read()
	return err
}

func (a requester) get(path string) (readResult, error) {
	return ask(a, wire.OpGetData, &wire.WatchRequest{Path: path}, readData).read()
}

func (a requester) exists(path string) (Stat, error) {
	r, err := ask(a, wire.OpExists, &wire.WatchRequest{Path: path}, readStat).read()
	return r.stat, err
}

func (a requester) children(path string) (readResult, error) {
	return ask(a, wire.OpGetChildren2, &wire.WatchRequest{Path: path}, readNames).read()
}

func (a requester) create(path string, data []byte, mode Mode, acl []ACL) error {
	op, body := createRequest(path, data, mode, acl)
	_, err := ask(a, op, body, readPath).written()
	return err
}

func (a requester) set(path string, data []byte, version int32) (Stat, error) {
	r, err := ask(a, wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: version}, readStat).written()
	return r.stat, err
}

func (a requester) delete(path string, version int32) error {
	_, err := ask(a, wire.OpDelete, &wire.NumberRequest{Path: path, Number: version}, ignoreAnswer).written()
	if err == nil || errors.Is(err, ErrNoNode) {
		a.t.deleted(path)
	}
	return err
}

func (a requester) sync(path string) error {
	_, err := ask(a, wire.OpSync, &wire.PathRequest{Path: path}, readPath).read()
	return err
}

// multi runs a transaction. On a refusal, the results say which operation was refused.
func (a requester) multi(parts []wire.MultiPart) outcome[[]OpResult] {
	o := ask(a, wire.OpMulti, &wire.MultiRequest{Parts: parts}, readResults)
	if o.err == nil {
		o.err = refusalError(o.v)
	}
	return o
}

// refusalError is why a transaction was refused, or nil.
func refusalError(rs []OpResult) error {
	for _, r := range rs {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
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
}

func ignoreAnswer(*wire.Decoder) struct{} { return struct{}{} }

func readPath(d *wire.Decoder) string { return d.String() }

func readData(d *wire.Decoder) (r readResult) {
	r.data = bytes.Clone(d.Buffer())
	r.stat = readingStat(d)
	return r
}

func readNames(d *wire.Decoder) (r readResult) {
	r.names = d.Strings()
	r.stat = readingStat(d)
	return r
}

func readStat(d *wire.Decoder) readResult { return readResult{stat: readingStat(d)} }

func readingStat(d *wire.Decoder) Stat {
	var s wire.Stat
	s.Decode(d)
	return Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid,
		Ctime: time.UnixMilli(s.Ctime), Mtime: time.UnixMilli(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: s.EphemeralOwner, DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

// readResults reads a transaction's results.
func readResults(d *wire.Decoder) (rs []OpResult) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return rs
		}
		var r OpResult
		switch h.Op {
		case wire.OpCreate:
			r.Path = d.String()
		case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
			r.Path, r.Stat = d.String(), readingStat(d)
		case wire.OpSetData:
			r.Stat = readingStat(d)
		case wire.OpError:
			r.Err = codeError(wire.Code(d.Int()))
		}
		rs = append(rs, r)
	}
	return rs
}

var codeErrors = map[wire.Code]error{
	wire.NoNode: ErrNoNode, wire.NodeExists: ErrNodeExists, wire.BadVersion: ErrBadVersion, wire.NotEmpty: ErrNotEmpty,
	wire.NoAuth: ErrNoAuth, wire.AuthFailed: ErrAuthFailed, wire.SessionClosedNeedsSASL: ErrAuthFailed,
	wire.ThrottledOp: ErrOverloaded, wire.QuotaExceeded: ErrQuotaExceeded,
	wire.ConnectionLoss: ErrSuspended, wire.SessionMoved: ErrSuspended, wire.SessionExpired: ErrSuspended,
}

// codeError returns the error of a server's code. A code that is not in the list is an error that names it, and that is not transient.
func codeError(code wire.Code) error {
	if code == wire.OK {
		return nil
	}
	if err, ok := codeErrors[code]; ok {
		return err
	}
	return fmt.Errorf("zookeeper: error %d (%s)", int32(code), code)
}

// Errors of requests that no server has seen.
var (
	errNotSent   = fmt.Errorf("%w before the request was sent", ErrSuspended)
	errQueueFull = errors.New("too much waits to be sent to the server")
)

func replyError(r link.Reply) error {
	switch {
	case errors.Is(r.Err, link.ErrNotSent):
		return errNotSent
	case errors.Is(r.Err, link.ErrFull):
		return errQueueFull
	case errors.Is(r.Err, link.ErrTooLong):
		return fmt.Errorf("%w: an answer of more than %d bytes", ErrTooLarge, link.MaxAnswer)
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
