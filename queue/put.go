package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lockstep-go/lockstep/framework"
)

// maxBatch bounds the items of one put.
const maxBatch = 1000

// putting makes the part that puts items.
func (q *core) putting(how putting, items [][]byte) (*part, error) {
	to := q.base
	p := &part{}
	if n := how.header.Priority; n > 0 {
		to = q.lane(strconv.Itoa(n))
		p.ops = append(p.ops, q.bellOp())
	}
	for _, data := range items {
		p.puts = append(p.puts, put{to, data})
	}
	p.measure()
	if len(items) > maxBatch || len(items) > 1 && p.size > maxTransaction {
		return nil, fmt.Errorf("%w: a batch of %d items and %d bytes, at most %d and %d are taken",
			framework.ErrTooLarge, len(items), p.size, maxBatch, maxTransaction)
	}
	return p, nil
}

// put writes a part and waits.
func (q *core) put(ctx context.Context, p *part) error {
	_, err := q.writer.do(ctx, p)
	return refusal(err)
}
