package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestNoItemIsLostUnderFaults lets producers and consumers work while sessions expire, links break,
// replies are lost, the server restarts and processes are killed. What was put is acknowledged
// once, nobody else has an item that somebody has, and in a strict queue each producer's items
// start in order.
func TestNoItemIsLostUnderFaults(t *testing.T) {
	seeds := uint64(9)
	if testing.Short() {
		seeds = 2
	}
	for _, order := range []Order{Parallel, Strict} {
		for seed := range seeds {
			t.Run(fmt.Sprint(order, seed), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) { newFaultRun(w, order, seed).run() })
			})
		}
	}
}

// faultRun is one run in virtual time.
type faultRun struct {
	*faultPlan
	*history

	producers, consumers sync.WaitGroup
	links                []*zktest.Link // of the producers
	alive                []*worker      // the consumers
	made                 int

	consuming func(context.Context, *worker, *rand.Rand) // what a goroutine of a consumer's does
	hands     int                                        // goroutines of a consumer's
	options   []Option                                   // of the consumers, beside the usual
}

// worker is a consumer's process.
type worker struct {
	*member
	stop context.CancelFunc
}

func newFaultRun(w *world, order Order, seed uint64) *faultRun {
	s := &faultRun{history: newHistory(order), hands: 2,
		faultPlan: &faultPlan{world: w, rand: rand.New(rand.NewPCG(seed, 7)), struck: map[string]int{},
			pause: 2500 * time.Millisecond}}
	s.consuming = s.consume
	return s
}

const (
	stormProducers = 3
	stormConsumers = 4
	stormItems     = 60 // of each producer
)

func (s *faultRun) run() {
	for p := range stormProducers {
		s.producer(p, segmentSize(20), s.produce)
	}
	for range stormConsumers {
		s.startConsumer()
	}
	s.injectFaults(s.allPut())
	s.finish()
}

// producer starts one.
func (s *faultRun) producer(p int, short Option, produce func(m *member, p int, r *rand.Rand)) {
	m := s.member(fmt.Sprint("p", p), WithOrder(s.order), short)
	s.links = append(s.links, m.link)
	r := rand.New(rand.NewPCG(s.rand.Uint64(), 1))
	s.producers.Go(func() { produce(m, p, r) })
}

// allPut reports whether the producers are done.
func (s *faultRun) allPut() func() bool {
	done := make(chan struct{})
	go func() { s.producers.Wait(); close(done) }()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// produce puts a producer's items, one after the other.
func (s *faultRun) produce(m *member, p int, r *rand.Rand) {
	for i := range stormItems {
		v := fmt.Sprintf("%d-%03d", p, i)
		s.putting(v)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(60))*time.Second)
		s.putEnded(m.Put(ctx, v), v)
		cancel()
		time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
	}
}

// startConsumer starts a consumer.
func (s *faultRun) startConsumer() {
	s.made++
	opts := []Option{WithOrder(s.order), segmentSize(20)}
	if s.order == Parallel {
		opts = append(opts, WithMaxInFlight(3), WithPrefetch(s.rand.IntN(3)))
	}
	w := &worker{member: s.member(fmt.Sprint("c", s.made), append(opts, s.options...)...)}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	for range s.hands {
		seed := s.rand.Uint64()
		s.consumers.Go(func() { s.consuming(ctx, w, rand.New(rand.NewPCG(seed, 2))) })
	}
	s.alive = append(s.alive, w)
}

// consume takes, works for a while, and mostly acknowledges.
func (s *faultRun) consume(ctx context.Context, w *worker, r *rand.Rand) {
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(20))*time.Second)
		d, err := w.Take(patience)
		cancel()
		if err != nil {
			s.takeEnded(ctx, err)
			continue
		}
		s.start(d)
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		if r.IntN(8) == 0 {
			_ = d.Nack(ctx, 0, errors.New("again"))
			continue
		}
		s.ackEnded(d.Value, d.Ack(context.Background()))
	}
}

// finish waits until all is acknowledged, and checks the books.
func (s *faultRun) finish() {
	s.producers.Wait()
	for deadline := time.Now().Add(time.Hour); s.left() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	for _, w := range s.alive {
		w.stop()
	}
	s.consumers.Wait()
	require.Zero(s.t, s.left())
	s.check(s.t)
}

// left counts the items that are left, in the base chain, in the lanes, and among its dead letters.
func (w *world) left() (n int) {
	dirs := []string{testPath + "/items", testPath + "/dead"}
	for _, lane := range w.Children(testPath + "/lanes") {
		dirs = append(dirs, testPath+"/lanes/"+lane)
	}
	for _, dir := range dirs {
		for _, seg := range w.Children(dir) {
			node, _ := w.Node(dir + "/" + seg)
			n += int(node.Stat.NumChildren)
		}
	}
	return n
}
