package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// What one put may hold, of what the codec makes. With headers, names and ACLs that is less than the servers' limit.
const (
	maxBatch      = 1000
	maxBatchBytes = 500_000
)

// putting makes the part that puts items.
func (q *core) putting(how putting, items [][]byte) (*part, error) {
	p := &part{adds: len(items), id: how.header.ID, with: how.with}
	if p.id != "" && len(items) > 1 {
		return nil, fmt.Errorf("%w: WithID is for single items, not for a batch of %d", ErrOption, len(items))
	}
	to, ops := q.destination(how.header.Priority, how.after)
	p.ops = ops
	for _, data := range items {
		to.data = data
		p.puts = append(p.puts, to)
	}
	return p, nil
}

// destination is where an item of a priority goes, and whom to tell.
func (q *core) destination(priority int, after time.Duration) (put, []framework.Op) {
	switch {
	case after > 0:
		return put{after: after}, []framework.Op{q.laterOp()}
	case priority > 0:
		return put{line: q.lane(strconv.Itoa(priority))}, []framework.Op{q.ringOp()}
	}
	return put{line: q.base}, nil
}

// put writes a part and waits, also for room unless the queue refuses.
func (q *core) put(ctx context.Context, p *part) error {
	_, err := q.writer.do(ctx, p)
	if !errors.Is(err, ErrFull) || q.refuses || p.adds > q.stored().Capacity {
		return err
	}
	return q.roomLine.put(ctx, p)
}
