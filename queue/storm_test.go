package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestNothingIsLostInAStorm lets producers and consumers work while sessions expire, links break, replies are lost,
// the server restarts and processes are killed. What was put is acknowledged once, nobody else has an item that
// somebody has, and in a strict queue each producer's items start in order.
func TestNothingIsLostInAStorm(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	for _, order := range []Order{Parallel, Strict} {
		for seed := range seeds {
			t.Run(fmt.Sprint(order, seed), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) { newStorm(w, order, seed).run() })
			})
		}
	}
}

// storm is one run.
type storm struct {
	*world
	*ledger
	order Order
	rand  *rand.Rand
	maybe map[string]bool     // puts of unknown outcome
	first map[string][]string // by producer, in the order of first starts
	seen  map[string]bool

	producers, consumers sync.WaitGroup
	alive                []*worker
	made                 int

	consuming func(context.Context, *worker, *rand.Rand) // what a consumer does
	options   []Option                                   // of the consumers, beside the usual
	look      time.Duration                              // how often to see whether all is done
}

// worker is a consumer's process.
type worker struct {
	*member
	stop context.CancelFunc
}

func newStorm(w *world, order Order, seed uint64) *storm {
	s := &storm{world: w, ledger: newLedger(), order: order, rand: rand.New(rand.NewPCG(seed, 7)),
		maybe: map[string]bool{}, first: map[string][]string{}, seen: map[string]bool{}, look: time.Second}
	s.consuming = s.consume
	return s
}

const (
	stormProducers = 3
	stormConsumers = 4
	stormItems     = 60 // of each producer
)

func (s *storm) run() {
	var links []*zktest.Link
	for p := range stormProducers {
		m := s.member(fmt.Sprint("p", p), WithOrder(s.order), bound(20))
		links = append(links, m.link)
		seed := s.rand.Uint64()
		s.producers.Go(func() { s.produce(m, p, rand.New(rand.NewPCG(seed, 1))) })
	}
	for range stormConsumers {
		s.hire()
	}
	s.weather(links)
}

// weather breaks things until the producers are done, heals them, and waits for the end.
func (s *storm) weather(links []*zktest.Link) {
	done := make(chan struct{})
	go func() { s.producers.Wait(); close(done) }()
	s.rage(links, done)
	for _, l := range links {
		l.Heal()
	}
	<-done
	for _, w := range s.alive {
		w.link.Heal()
	}
	s.finish()
}

// produce puts a producer's items, one after the other.
func (s *storm) produce(m *member, p int, r *rand.Rand) {
	for i := range stormItems {
		v := fmt.Sprintf("%d-%03d", p, i)
		s.putting(v)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(60))*time.Second)
		err := m.Put(ctx, v)
		cancel()
		switch {
		case err == nil:
		case errors.Is(err, ErrUnknown):
			s.mu.Lock()
			s.maybe[v] = true
			s.mu.Unlock()
		case errors.Is(err, context.DeadlineExceeded):
			s.mu.Lock()
			delete(s.put, v)
			s.mu.Unlock()
		default:
			s.fault("put: %v", err)
		}
		time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
	}
}

func (s *storm) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// hire starts a consumer.
func (s *storm) hire() {
	s.made++
	opts := []Option{WithOrder(s.order), bound(20)}
	if s.order == Parallel {
		opts = append(opts, WithWindow(3), WithPrefetch(s.rand.IntN(3)))
	}
	w := &worker{member: s.member(fmt.Sprint("c", s.made), append(opts, s.options...)...)}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	for range 2 {
		seed := s.rand.Uint64()
		s.consumers.Go(func() { s.consuming(ctx, w, rand.New(rand.NewPCG(seed, 2))) })
	}
	s.alive = append(s.alive, w)
}

// consume takes, works for a while, and mostly acknowledges.
func (s *storm) consume(ctx context.Context, w *worker, r *rand.Rand) {
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(20))*time.Second)
		d, err := w.Take(patience)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.Is(err, ErrClosed) && !errors.Is(err, framework.ErrClosed) {
				s.fault("take: %v", err)
				return
			}
			continue
		}
		s.start(d)
		s.noteFirst(d.Value)
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		if r.IntN(8) == 0 {
			_ = d.Nack(ctx, 0, errors.New("again"))
			continue
		}
		if err := d.Ack(context.Background()); err == nil {
			s.ack(d.Value)
		} else if !errors.Is(err, ErrLost) && !errors.Is(err, ErrUnknown) {
			s.fault("ack: %v", err)
		}
	}
}

func (s *storm) noteFirst(v string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen[v] {
		s.seen[v] = true
		p, _, _ := strings.Cut(v, "-")
		s.first[p] = append(s.first[p], v)
	}
}

// rage breaks things until the producers are done.
func (s *storm) rage(links []*zktest.Link, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(200+s.rand.IntN(2500)) * time.Millisecond):
		}
		link := links[s.rand.IntN(len(links))]
		if s.rand.IntN(2) == 0 {
			link = s.alive[s.rand.IntN(len(s.alive))].link
		}
		switch s.rand.IntN(9) {
		case 0, 1, 2:
			link.Reset()
		case 3:
			link.Cut()
			time.AfterFunc(time.Duration(s.rand.IntN(20000))*time.Millisecond, link.Heal)
		case 4:
			link.BlackHole(true, true)
			time.AfterFunc(time.Duration(s.rand.IntN(20000))*time.Millisecond, link.Heal)
		case 5, 6:
			s.DropReply(1+s.rand.IntN(4), zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool { return len(r.Parts) > 1 }})
		case 7:
			s.Restart()
		case 8:
			i := s.rand.IntN(len(s.alive))
			w := s.alive[i]
			s.alive = append(s.alive[:i], s.alive[i+1:]...)
			w.stop()
			w.kill()
			s.hire()
		}
	}
}

// finish waits until all is acknowledged, and checks the books.
func (s *storm) finish() {
	t := s.t
	for deadline := time.Now().Add(30 * time.Minute); s.items() > 0 && time.Now().Before(deadline); {
		time.Sleep(s.look)
	}
	time.Sleep(time.Minute)
	for _, w := range s.alive {
		w.stop()
	}
	s.consumers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.wrong)
	require.Zero(t, s.items(), "left: %v", s.Tree(testPath))
	for v := range s.put {
		if !s.maybe[v] {
			require.True(t, s.seen[v], "%s was lost", v)
		}
	}
	for v, n := range s.acked {
		require.Positive(t, s.put[v], v)
		require.Equal(t, 1, n, v)
	}
	if s.order == Strict {
		for _, first := range s.first {
			require.IsIncreasing(t, first)
		}
	}
}

// items counts those that are left.
func (s *storm) items() (n int) {
	for _, node := range s.Tree(testPath) {
		if _, name := framework.Split(node.Path); strings.HasPrefix(name, itemPrefix) {
			n++
		}
	}
	return n
}
