package framework

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// GetAll reads many nodes in one request, in the order of the paths. Each node is read separately: a node that cannot be read
// has its own error, and nodes may change between the reads. The answer holds all data at once; beyond 64 MiB
// GetAll fails with ErrTooLarge. When the connection is lost, it reads again on the next one.
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
	refused func(error) T // the result of a read that the servers have refused
}

var (
	dataReads = readKind[Node]{"get", wire.OpGetData,
		func(d *wire.Decoder) Node { return Node{Data: bytes.Clone(d.Buffer()), Stat: decodeStat(d)} },
		func(err error) Node { return Node{Err: err} }}
	listReads = readKind[primitives.Listing]{"list", wire.OpGetChildren,
		func(d *wire.Decoder) primitives.Listing { return primitives.Listing{Names: d.Strings()} },
		func(err error) primitives.Listing { return primitives.Listing{Err: err} }}
)

// readMany reads many nodes in one request.
func (k readKind[T]) readMany(ctx context.Context, s *Session, paths []string) ([]T, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts, total := make([]wire.MultiPart, len(paths)), 0
	for i, path := range paths {
		full, err := s.transport.checkPath(path, 0)
		if err != nil {
			return nil, failure.Wrap(k.name, path, err)
		}
		total += len(full) + partOverhead
		parts[i] = wire.MultiPart{Op: k.op, Body: &wire.WatchRequest{Path: full}}
	}
	if err := checkRequestSize(total); err != nil {
		return nil, failure.Wrap(k.name, paths[0], err)
	}
	all, err := repeatUntilKnown(ctx, s.transport, func(a requester) ([]T, error) {
		all, err := sendAndWait(a, wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, k.decodeParts).asRead()
		if err == nil && len(all) != len(parts) {
			err = fmt.Errorf("zookeeper: %d answers to %d reads", len(all), len(parts))
		}
		return all, err
	})
	return all, failure.Wrap(k.name, paths[0], err)
}

// decodeParts decodes the results of reads. It stops at the result of another operation, so that the number of results is wrong.
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
