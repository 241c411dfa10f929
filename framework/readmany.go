package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// GetAll reads any number of nodes, in the order of the paths. Each node is read separately: a node
// that cannot be read has its own error, and nodes may change between the reads. All data are held
// at once. Only if the data of one node alone are larger than an answer may be, 64 MiB, its error
// wraps ErrTooLarge. When the connection is lost, GetAll goes on with the next one.
//
// It reads up to a thousand nodes in one request. So that heartbeats do not wait long behind the
// answers, one answer should have no more than 512 KiB, and all answers that a session awaits no
// more than 1 MiB; an answer with a single node may have more. The first request expects nodes like
// those that the session has read before, and a later one nodes like those in the answer before.
// Until the session has read nodes, or after a connection was lost meanwhile, the requests are
// small at first.
func (s *Session) GetAll(ctx context.Context, paths ...string) ([]Node, error) {
	return dataReads.readMany(ctx, s, paths)
}

func (p operations) ListAll(ctx context.Context, paths ...string) ([]primitives.Listing, error) {
	return listReads.readMany(ctx, p.s, paths)
}

// readKind is a kind of read of which one request can have many.
type readKind[T any] struct {
	name    string // in errors
	op      wire.Op
	decode  func(*wire.Decoder) T
	size    func(T) int   // bytes that a result takes in an answer, nearly
	refused func(error) T // the result of a read that the servers have refused
}

var (
	dataReads = readKind[Node]{"get", wire.OpGetData,
		func(d *wire.Decoder) Node { return Node{Data: bytes.Clone(d.Buffer()), Stat: decodeStat(d)} },
		func(n Node) int { return partOverhead + len(n.Data) },
		func(err error) Node { return Node{Err: err} }}
	listReads = readKind[primitives.Listing]{"list", wire.OpGetChildren,
		func(d *wire.Decoder) primitives.Listing { return primitives.Listing{Names: d.Strings()} },
		func(l primitives.Listing) (size int) {
			for _, name := range l.Names {
				size += 4 + len(name)
			}
			return partOverhead + size
		},
		func(err error) primitives.Listing { return primitives.Listing{Err: err} }}
)

// readMany reads many nodes, in one request after the other.
func (k readKind[T]) readMany(ctx context.Context, s *Session, paths []string) ([]T, error) {
	rest := make([]string, len(paths))
	for i, path := range paths {
		full, err := s.caller.checkPath(path, 0)
		if err != nil {
			return nil, failure.Wrap(k.name, path, err)
		}
		rest[i] = full
	}
	all, call := make([]T, 0, len(paths)), s.bulk.begin(k.op)
	for len(rest) > 0 {
		some, err := repeatUntilKnown(ctx, s.caller,
			func(a requester) ([]T, error) { return k.readNext(a, call, rest) })
		switch {
		case errors.Is(err, errTooManyNodes):
			continue
		case err != nil:
			return nil, failure.Wrap(k.name, paths[len(all)], err)
		}
		all, rest = append(all, some...), rest[len(some):]
	}
	return all, nil
}

// errTooManyNodes is returned when the answer to a request of several nodes was too large.
var errTooManyNodes = errors.New("too many nodes in one request")

// readNext reads the first of the nodes in one request.
func (k readKind[T]) readNext(a requester, call *bulkRead, paths []string) ([]T, error) {
	n := call.nodes(paths)
	received, err := call.expect(a.ctx, n)
	if err != nil {
		return nil, err
	}
	parts := make([]wire.MultiPart, n)
	for i, path := range paths[:n] {
		parts[i] = wire.MultiPart{Op: k.op, Body: &wire.WatchRequest{Path: path}}
	}
	request, f := newRequest(wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, k.decodeParts)
	done := request.Done
	request.Done = func(r link.Reply) {
		received() // also if the caller has left
		done(r)
	}
	a.caller.sendRequests(request)
	return k.handleAnswer(call, n, waitForOutcome(a.ctx, a.caller, f))
}

// handleAnswer handles the outcome of a request of n nodes. The error is errTooManyNodes if fewer
// must be read at once.
func (k readKind[T]) handleAnswer(call *bulkRead, n int, o outcome[[]T]) ([]T, error) {
	switch {
	case errors.Is(o.err, ErrTooLarge) && n == 1:
		return []T{k.refused(o.err)}, nil
	case errors.Is(o.err, ErrTooLarge):
		call.beCareful()
		return nil, errTooManyNodes
	case o.lost && errors.Is(o.err, ErrSuspended):
		call.beCareful()
	case o.err == nil && len(o.v) != n:
		return nil, fmt.Errorf("zookeeper: %d answers to %d reads", len(o.v), n)
	case o.err == nil:
		largest := 0
		for _, one := range o.v {
			largest = max(largest, k.size(one))
		}
		call.learn(largest)
	}
	return o.asRead()
}

// decodeParts decodes the results of reads. It stops at the result of another operation, so that
// the number of results is wrong.
func (k readKind[T]) decodeParts(d *wire.Decoder) (all []T) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return all
		}
		switch h.Op {
		case wire.OpError:
			all = append(all, k.refused(codeError(wire.Code(d.Int()))))
		case k.op:
			all = append(all, k.decode(d))
		default:
			return all
		}
	}
	return all
}
