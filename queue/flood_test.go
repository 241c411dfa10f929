package queue

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var floodItems = flag.Int("flood.items", 16_000, "how many items each flood has; 1,000,000 take minutes")

const (
	floodProducers = 8
	floodConsumers = 8
	floodBatch     = 250 // items of one put
	floodHandful   = 32  // items that a consumer works on at once
)

// TestNothingIsLostInAFlood is the storm with many items: they are put in batches, and the queue grows deep while it is
// taken from by consumers that claim ahead and acknowledge many at once. It rages until nearly all is acknowledged.
func TestNothingIsLostInAFlood(t *testing.T) {
	for _, order := range []Order{Parallel, Strict} {
		t.Run(string(order), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { newStorm(w, order, 1).flood() })
		})
	}
}

func (s *storm) flood() {
	batches := *floodItems / floodProducers / floodBatch
	require.Positive(s.t, batches, "-flood.items=%d are too few", *floodItems)
	began := time.Now()
	s.consuming, s.pause = s.scoop, 600*time.Millisecond
	s.options = []Option{bound(1000), WithWindow(4 * floodHandful), WithPrefetch(floodHandful)}
	if s.order == Strict { // the order of two goroutines' starts would not be known
		s.hands = 1
	}
	for p := range floodProducers {
		s.producer(p, bound(1000), func(m *member, p int, r *rand.Rand) { s.pour(m, p, batches, r) })
	}
	for range floodConsumers {
		s.hire()
	}
	isPut := s.allPut()
	s.rage(func() bool {
		all, acked := s.counts()
		return isPut() && acked >= all*19/20
	})
	s.finish()
	s.t.Logf("%v", s.ledger)
	s.t.Logf("%v; %v of virtual time", s.weather, time.Since(began).Round(time.Second))
}

// pour puts a producer's batches, one after the other.
func (s *storm) pour(m *member, p, batches int, r *rand.Rand) {
	for b := range batches {
		values := make([]string, floodBatch)
		for i := range values {
			values[i] = fmt.Sprintf("%d-%05d-%03d", p, b, i)
		}
		s.putting(values...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(60))*time.Second)
		s.putEnded(m.PutBatch(ctx, values), values...)
		cancel()
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
}

// scoop takes what is there, up to a handful, works for a while, and acknowledges all at once.
func (s *storm) scoop(ctx context.Context, w *worker, r *rand.Rand) {
	for ctx.Err() == nil {
		handful := s.handful(ctx, w)
		time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
		acks := make([]*Pending, len(handful))
		for i, d := range handful {
			acks[i] = d.AckAsync()
		}
		for i, ack := range acks {
			s.ackEnded(handful[i].Value, ack.Wait(context.Background()))
		}
	}
}

// handful waits for one delivery, and takes those that come right after it.
func (s *storm) handful(ctx context.Context, w *worker) (ds []*Delivery[string]) {
	patience := time.Second
	for len(ds) < floodHandful {
		limited, cancel := context.WithTimeout(ctx, patience)
		d, err := w.Take(limited)
		cancel()
		if err != nil {
			s.takeEnded(ctx, err)
			return ds
		}
		s.start(d)
		ds = append(ds, d)
		patience = 10 * time.Millisecond
	}
	return ds
}
