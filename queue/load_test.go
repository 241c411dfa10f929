package queue

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var floodItems = flag.Int("flood.items", 16_000,
	"how many items each flood has, half with -short; 1,000,000 take minutes")

func floodSize() int {
	if testing.Short() {
		return *floodItems / 2
	}
	return *floodItems
}

const (
	floodProducers = 8
	floodConsumers = 8
	floodBatch     = 250 // items of one put
)

// TestNoItemIsLostUnderLoad is a fault run with many items: they are put in batches, and the queue
// grows deep while it is taken from by consumers that claim ahead and acknowledge many at once,
// until its bound is reached. Some batches are urgent. It rages until nearly all is acknowledged.
func TestNoItemIsLostUnderLoad(t *testing.T) {
	for _, order := range []Order{Parallel, Strict} {
		t.Run(string(order), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { newFaultRun(w, order, 1).putManyAtOnce() })
		})
	}
}

func (s *faultRun) putManyAtOnce() {
	batches := floodSize() / floodProducers / floodBatch
	require.Positive(s.t, batches, "-flood.items=%d are too few", *floodItems)
	began := time.Now()
	s.pause = 600 * time.Millisecond
	s.consuming = func(ctx context.Context, w *worker, r *rand.Rand) {
		s.takeBatches(ctx, w.Queue, 200*time.Millisecond, r)
	}
	s.options = []Option{segmentSize(1000), WithMaxInFlight(4 * handful), WithPrefetch(handful)}
	if s.order == Strict { // the order of two goroutines' starts would not be known
		s.hands = 1
	}
	full := []Option{WithOrder(s.order), WithCapacity(floodSize() / 2)}
	maker := s.member("maker", full...)
	require.NoError(s.t, maker.Resume(s.t.Context())) // makes the queue
	for p := range floodProducers {
		s.producer(p, segmentSize(1000), func(m *member, p int, r *rand.Rand) {
			s.putBatches(m.Queue, p, batches, floodBatch, 1500*time.Millisecond, r)
		})
	}
	for range floodConsumers {
		s.startConsumer()
	}
	isPut := s.allPut()
	s.injectFaults(func() bool {
		all, acked := s.counts()
		return isPut() && acked >= all*19/20
	})
	s.finish()
	if capacity := floodSize() / 2; capacity <= 10_000 { // else it takes too long
		s.requireRoom(maker, capacity)
	}
	s.t.Logf("%v", s.history)
	s.t.Logf("%v; %v of virtual time", s.faultPlan, time.Since(began).Round(time.Second))
}

// requireRoom requires that an empty queue takes as many items as its bound says, and no more, and
// removes them.
func (s *faultRun) requireRoom(m *member, capacity int) {
	for from := 0; from < capacity; from += maxBatch {
		require.NoError(s.t, m.PutBatch(within(s.t, time.Minute), names(from, min(capacity, from+maxBatch))),
			"room was lost")
	}
	refusing := s.member("refusing", WithOrder(s.order), WithFailWhenFull())
	require.ErrorIs(s.t, refusing.Put(s.t.Context(), "x"), ErrFull)
	n, err := m.Purge(s.t.Context())
	require.NoError(s.t, err)
	require.Equal(s.t, capacity, n)
}
