package queue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

var floodItems = flag.Int("flood.items", 16_000, "how many items the flood has; 1,000,000 takes minutes")

const (
	floodProducers = 8
	floodConsumers = 8
	floodBatch     = 250 // items of one put
	floodHandful   = 32  // items that a consumer works on at once
)

// TestNothingIsLostInAFlood is the storm with many items: they are put in batches, and the queue grows deep while it is
// taken from by consumers that claim ahead and acknowledge many at once.
func TestNothingIsLostInAFlood(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := newStorm(w, Parallel, 1)
		s.consuming, s.look = s.scoop, time.Minute
		s.options = []Option{bound(1000), WithWindow(4 * floodHandful), WithPrefetch(floodHandful)}
		batches := *floodItems / floodProducers / floodBatch
		require.Positive(t, batches, "-flood.items=%d are too few", *floodItems)
		began := time.Now()
		s.flood(batches)
		t.Logf("%d items put, %d acknowledged, %d puts of unknown outcome, %d consumers, %v of virtual time",
			len(s.put), len(s.acked), len(s.maybe), s.made, time.Since(began))
	})
}

// flood has each producer put so many batches.
func (s *storm) flood(batches int) {
	var links []*zktest.Link
	for p := range floodProducers {
		m := s.member(fmt.Sprint("p", p), WithOrder(s.order), bound(1000))
		links = append(links, m.link)
		seed := s.rand.Uint64()
		s.producers.Go(func() { s.pour(m, p, batches, rand.New(rand.NewPCG(seed, 1))) })
	}
	for range floodConsumers {
		s.hire()
	}
	s.weather(links)
}

// pour puts a producer's batches, one after the other.
func (s *storm) pour(m *member, p, batches int, r *rand.Rand) {
	for b := range batches {
		values := make([]string, floodBatch)
		for i := range values {
			values[i] = fmt.Sprintf("%d-%05d-%03d", p, b, i)
			s.putting(values[i])
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(60))*time.Second)
		err := m.PutBatch(ctx, values)
		cancel()
		s.putEnded(values, err)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	}
}

func (s *storm) putEnded(values []string, err error) {
	if err == nil {
		return
	}
	unknown := errors.Is(err, ErrUnknown)
	if !unknown && !errors.Is(err, context.DeadlineExceeded) {
		s.fault("put: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if unknown {
			s.maybe[v] = true
		} else {
			delete(s.put, v)
		}
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
			if err := ack.Wait(context.Background()); err == nil {
				s.ack(handful[i].Value)
			} else if !errors.Is(err, ErrLost) && !errors.Is(err, ErrUnknown) {
				s.fault("ack: %v", err)
			}
		}
	}
}

func (s *storm) handful(ctx context.Context, w *worker) (ds []*Delivery[string]) {
	patience, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for len(ds) < floodHandful {
		d, err := w.Take(patience)
		if err != nil {
			if patience.Err() == nil && !errors.Is(err, ErrClosed) {
				s.fault("take: %v", err)
			}
			return ds
		}
		s.start(d)
		s.noteFirst(d.Value)
		ds = append(ds, d)
	}
	return ds
}
