package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// handful is how many items a consumer works on at once in runs under load.
const handful = 32

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// putBatches puts so many batches of a producer, one after the other, with pauses of up to most.
// Some are urgent; the history knows the order of each priority's.
func (l *history) putBatches(q *Queue[string], p, batches, batch int, most time.Duration, r *rand.Rand) {
	for b := range batches {
		values, priority := make([]string, batch), max(0, r.IntN(8)-5)
		for i := range values {
			values[i] = fmt.Sprintf("%dp%d-%05d-%03d", p, priority, b, i)
		}
		l.putting(values...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(60))*time.Second)
		l.putEnded(q.PutBatch(ctx, values, WithPriority(priority)), values...)
		cancel()
		pause(context.Background(), time.Duration(r.Int64N(int64(most))))
	}
}

// takeBatches takes what is there, up to a handful, works for up to most, and acknowledges all at
// once.
func (l *history) takeBatches(ctx context.Context, q *Queue[string], most time.Duration, r *rand.Rand) {
	for ctx.Err() == nil {
		ds, err := takeSeveral(ctx, q, l.start)
		if err != nil {
			l.takeEnded(ctx, err)
		}
		pause(ctx, time.Duration(r.Int64N(int64(most))))
		ackAll(ds, func(d *Delivery[string], err error) { l.ackEnded(d.Value, err) })
	}
}

// several waits for one delivery, and takes those that come right after it. Its error is that of a
// Take, beside what was taken before.
func takeSeveral(ctx context.Context, q *Queue[string],
	start func(*Delivery[string])) (ds []*Delivery[string], err error) {
	patience := time.Second
	for len(ds) < handful {
		limited, cancel := context.WithTimeout(ctx, patience)
		d, err := q.Take(limited)
		cancel()
		if err != nil {
			return ds, err
		}
		start(d)
		ds = append(ds, d)
		patience = 10 * time.Millisecond
	}
	return ds, nil
}

// ackAll acknowledges deliveries at once, and tells the outcome of each.
func ackAll(ds []*Delivery[string], tell func(*Delivery[string], error)) {
	acks := make([]*Pending, len(ds))
	for i, d := range ds {
		acks[i] = d.AckAsync()
	}
	for i, ack := range acks {
		tell(ds[i], ack.Wait(context.Background()))
	}
}
