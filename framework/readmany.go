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
	return readMany(ctx, s, "get", wire.OpGetData, paths, func(d *wire.Decoder) Node {
		return Node{Data: bytes.Clone(d.Buffer()), Stat: decodeStat(d)}
	}, func(err error) Node { return Node{Err: err} })
}

func (p operations) ListAll(ctx context.Context, paths ...string) ([]primitives.Listing, error) {
	return readMany(ctx, p.s, "list", wire.OpGetChildren, paths, func(d *wire.Decoder) primitives.Listing {
		return primitives.Listing{Names: d.Strings()}
	}, func(err error) primitives.Listing { return primitives.Listing{Err: err} })
}

// readMany sends one kind of read for many nodes in one request.
func readMany[T any](ctx context.Context, s *Session, operation string, op wire.Op, paths []string, read func(*wire.Decoder) T, refused func(error) T) ([]T, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts, total := make([]wire.MultiPart, len(paths)), 0
	for i, path := range paths {
		full, err := s.transport.checkPath(path, 0)
		if err != nil {
			return nil, failure.Wrap(operation, path, err)
		}
		total += len(full) + partOverhead
		parts[i] = wire.MultiPart{Op: op, Body: &wire.WatchRequest{Path: full}}
	}
	if err := checkRequestSize(total); err != nil {
		return nil, failure.Wrap(operation, paths[0], err)
	}
	all, err := repeatUntilKnown(ctx, s.transport, func(a requester) ([]T, error) {
		all, err := sendAndWait(a, wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, func(d *wire.Decoder) []T { return readParts(d, op, read, refused) }).asRead()
		if err == nil && len(all) != len(parts) {
			err = fmt.Errorf("zookeeper: %d answers to %d reads", len(all), len(parts))
		}
		return all, err
	})
	return all, failure.Wrap(operation, paths[0], err)
}

// readParts decodes the results of reads. It stops at the result of another operation, so that the number of results is wrong.
func readParts[T any](d *wire.Decoder, op wire.Op, read func(*wire.Decoder) T, refused func(error) T) (all []T) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return all
		}
		switch h.Op {
		case wire.OpError:
			all = append(all, refused(codeError(wire.Code(d.Int()))))
		case op:
			all = append(all, read(d))
		default:
			return all
		}
	}
	return all
}
