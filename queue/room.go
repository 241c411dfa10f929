package queue

import (
	"context"
	"strconv"

	"github.com/lockstep-go/lockstep/framework"
)

// room counts a bounded queue's items: <path>/in holds how many were ever put, and each put raises it at its version;
// the version of <path>/out counts those that have left. Since the latter only grows, a count of it that is old errs on
// the safe side. Both are counted modulo 2^32.
type room struct {
	known   bool
	in      uint32
	version int32
	out     uint32
	path    string
}

// op counts n items more.
func (r *room) op(n int) framework.Op {
	return framework.SetOp(r.path, strconv.AppendUint(nil, uint64(r.in+uint32(n)), 10), r.version)
}

// added takes in that a transaction has counted n items.
func (r *room) added(n int) {
	if r.known && n > 0 {
		r.in += uint32(n)
		r.version++
	}
}

// fits tells which parts there is room for. Once there is none for a part there is none for those behind it.
func (r *room) fits(ctx context.Context, s *framework.Session, q *core, parts []*part) (map[*part]bool, error) {
	n := adding(parts)
	capacity := q.stored().Capacity
	if !r.known || int(r.in-r.out)+n > capacity {
		if err := r.read(ctx, s, q); err != nil {
			return nil, err
		}
	}
	fits, used := map[*part]bool{}, int(r.in-r.out)
	for _, p := range parts {
		if p.adds == 0 {
			continue
		}
		if used += p.adds; used > capacity {
			break
		}
		fits[p] = true
	}
	return fits, nil
}

// read reads out before in, so that what left meanwhile is not counted.
func (r *room) read(ctx context.Context, s *framework.Session, q *core) error {
	r.path = q.below(inNode)
	st, err := s.Exists(ctx, q.below(outNode))
	if err != nil {
		return err
	}
	out := uint32(st.Version)
	data, st, err := s.Get(ctx, r.path)
	if err != nil {
		return err
	}
	in, err := decodeCount(data)
	if err != nil {
		return framework.Wrap("read", r.path, err)
	}
	r.known, r.in, r.version, r.out = true, in, st.Version, out
	return nil
}

// decodeCount is the one reader of the count of puts.
func decodeCount(data []byte) (uint32, error) {
	n, err := strconv.ParseUint(string(data), 10, 32)
	if err != nil {
		return 0, errCount
	}
	return uint32(n), nil
}
