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

	"github.com/lockstep-go/lockstep/internal/failure"
)

const (
	fullCapacity = 40
	fullAttempts = 3
	fullItems    = 25 // of each producer
)

// TestNoItemIsLostUnderFaultsWithAllFeatures is a fault run of a bounded queue whose items have
// ids, priorities and delays, are given back at once and for later, and have some attempts each,
// while an operator pauses, resumes and purges the queue.
func TestNoItemIsLostUnderFaultsWithAllFeatures(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 1
	}
	for _, order := range []Order{Parallel, Strict} {
		for seed := range seeds {
			t.Run(fmt.Sprint(order, seed), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) { (&featureFaultRun{faultRun: newFaultRun(w, order, seed)}).run() })
			})
		}
	}
}

// featureFaultRun is one run. The history does not know an item's options; putOptions does.
type featureFaultRun struct {
	*faultRun

	mu         sync.Mutex
	putOptions map[string]*putOptions
	paused     time.Time // since when the queue is paused; zero if it is not, or may not be
}

// facts are what is known of one item beside its fate.
type putOptions struct {
	due     time.Time // before which it may not be had; zero if it was not put for later
	attempt int       // of its last delivery
	put     bool      // for sure
	maybe   bool      // a purge may have removed it
	purged  bool      // a purge that began when it was there has returned
}

func (s *featureFaultRun) run() {
	s.putOptions = map[string]*putOptions{}
	s.options = []Option{segmentSize(7), WithMaxAttempts(fullAttempts), WithIdleTimeout(2 * time.Second)}
	s.consuming = s.consume
	stored := []Option{WithOrder(s.order), WithCapacity(fullCapacity), WithDedup(5 * time.Minute), segmentSize(7)}
	operator := s.member("operator", stored...)
	require.NoError(s.t, operator.Resume(s.t.Context())) // makes the queue
	for p := range stormProducers {
		m := s.member(fmt.Sprint("p", p), stored...)
		s.links = append(s.links, m.link)
		r := rand.New(rand.NewPCG(s.rand.Uint64(), 1))
		s.producers.Go(func() { s.produce(m, p, r) })
	}
	for range stormConsumers {
		s.startConsumer()
	}
	over := make(chan struct{})
	var operating sync.WaitGroup
	r := rand.New(rand.NewPCG(s.rand.Uint64(), 3))
	operating.Go(func() { s.operate(operator, over, r) })
	s.injectFaults(s.allPut())
	close(over)
	operating.Wait()
	s.settle(operator)
}

// produce puts a producer's items, one after the other. A put whose outcome is unknown is repeated
// with its id.
func (s *featureFaultRun) produce(m *member, p int, r *rand.Rand) {
	for i := range fullItems {
		priority := max(0, r.IntN(2*MaxPriority)-MaxPriority)
		v := fmt.Sprintf("%dp%d-%03d", p, priority, i) // the history knows the order of what goes before the dash
		f := &putOptions{}
		opts := []PutOption{WithPriority(priority)}
		if r.IntN(4) == 0 {
			delay := time.Duration(r.IntN(9000)) * time.Millisecond
			f.due = time.Now().Add(delay)
			v = fmt.Sprintf("%dlater%d-%03d", p, i, i)
			opts = append(opts, WithDelay(delay))
		}
		s.mu.Lock()
		s.putOptions[v] = f
		s.mu.Unlock()
		s.putting(v)
		err := s.put(m, r, v, append(opts, WithID(v))...)
		s.mu.Lock()
		f.put = err == nil
		s.mu.Unlock()
		s.putEnded(err, v)
		time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
	}
}

// put puts an item until it is known whether it is there.
func (s *featureFaultRun) put(m *member, r *rand.Rand, v string, opts ...PutOption) error {
	for unknown := false; ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(90))*time.Second)
		err := m.Put(ctx, v, opts...)
		cancel()
		switch {
		case unknown && errors.Is(err, ErrDuplicate):
			return nil
		case errors.Is(err, errUnknown):
			unknown = true
		case unknown && errors.Is(err, context.DeadlineExceeded): // this time nothing was put
		default:
			return err
		}
	}
}

func (s *featureFaultRun) consume(ctx context.Context, w *worker, r *rand.Rand) {
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
		switch r.IntN(8) {
		case 0:
			_ = d.Nack(ctx, 0, errors.New("again"))
		case 1:
			_ = d.Nack(ctx, time.Duration(r.IntN(5000))*time.Millisecond, errors.New("later"))
		default:
			purged := s.known(d.Value).purged
			err := d.Ack(context.Background())
			if s.ackEnded(d.Value, err); err == nil && purged {
				s.fault("%s was acknowledged after a purge had removed it", d.Value)
			}
		}
	}
}

// start notes a delivery that stands.
func (s *featureFaultRun) start(d *Delivery[string]) {
	s.faultRun.start(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.putOptions[d.Value]
	switch {
	case f == nil: // the history has reported it
		return
	case time.Now().Before(f.due.Add(-time.Millisecond)):
		s.fault("%s came before %v", d.Value, f.due)
	case d.Attempt <= f.attempt || d.Attempt > fullAttempts:
		s.fault("%s has attempt %d after %d, of %d", d.Value, d.Attempt, f.attempt, fullAttempts)
	case !s.paused.IsZero() && time.Since(s.paused) > timeout+time.Second && d.Context().Err() == nil:
		// its consumer was connected since
		s.fault("%s was handed out though the queue is paused since %v", d.Value, s.paused)
	}
	f.attempt = d.Attempt
}

func (s *featureFaultRun) known(v string) putOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.putOptions[v]
}

// operate pauses and purges the queue now and then, and counts what is there.
func (s *featureFaultRun) operate(m *member, over chan struct{}, r *rand.Rand) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(200+r.IntN(3000)) * time.Millisecond):
		}
		if n := s.itemCount(); n > fullCapacity {
			s.fault("%d items are there, of %d", n, fullCapacity)
		}
		switch r.IntN(16) {
		case 0:
			s.purge(m)
		case 1:
			s.repeatUntilDone("pause", m.Pause)
			s.setPaused(time.Now())
			time.Sleep(time.Duration(r.IntN(30_000)) * time.Millisecond)
			s.setPaused(time.Time{})
			s.repeatUntilDone("resume", m.Resume)
		}
	}
}

func (s *featureFaultRun) setPaused(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = since
}

// repeatUntilDone repeats what may fail with its session.
func (s *featureFaultRun) repeatUntilDone(what string, f func(context.Context) error) {
	for {
		err := f(context.Background())
		if err == nil {
			return
		}
		if !failure.IsTransient(err) {
			s.fault("%s: %v", what, err)
			return
		}
	}
}

// purge removes what is there. What is not due so far, or was due before, is gone then; what comes
// due meanwhile may stay.
func (s *featureFaultRun) purge(m *member) {
	s.mu.Lock()
	var there []*putOptions
	for _, f := range s.putOptions {
		if f.maybe = true; f.put {
			there = append(there, f)
		}
	}
	s.mu.Unlock()
	_, err := m.Purge(context.Background())
	if err != nil && !failure.IsTransient(err) {
		s.fault("purge: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.putOptions {
		f.maybe = true // also what was put meanwhile
	}
	for _, f := range there {
		if f.due.IsZero() && f.attempt == 0 { // one that was given back for later may have come due
			f.purged = f.purged || err == nil
		}
	}
}

// settle waits until nothing is left, and checks the books, what was given up, and that all room is
// there again.
func (s *featureFaultRun) settle(m *member) {
	s.producers.Wait()
	for deadline := time.Now().Add(time.Hour); s.itemCount() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	for _, w := range s.alive {
		w.stop()
	}
	s.consumers.Wait()
	require.Zero(s.t, s.itemCount())
	dead := map[string]bool{}
	for _, letter := range m.dead() {
		v := string(letter.Data)
		if letter.Attempts != fullAttempts {
			s.fault("%s was given up after %d attempts: %s", v, letter.Attempts, letter.LastError)
		}
		dead[v] = true
	}
	for v, f := range s.items {
		if dead[v] && f.acked {
			s.fault("%s is a dead letter and was acknowledged", v)
		}
		f.maybe = f.maybe || dead[v] || s.putOptions[v].maybe
	}
	s.check(s.t)
	s.requireRoom(m, fullCapacity)
	s.t.Logf("%v; %d dead; %v", s.history, len(dead), s.faultPlan)
}
