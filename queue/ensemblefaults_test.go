package queue

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

var siegeItems = flag.Int("ensemble.items", 1_200,
	"items of each run under faults on the ensemble; 100,000 take minutes")

const (
	siegeProducers = 8
	siegeConsumers = 6 // in this process
	siegeProcesses = 2 // consumers that are processes of their own
	siegeBatch     = 25
	siegeTimeout   = 4 * time.Second // of a session: eight ticks of the servers
	siegePatience  = 10 * time.Minute
)

// TestNoItemIsLostWhileConsumersDie is the flood on three real servers: links are cut, black-holed
// and lose replies, sessions expire, servers are killed and started again, consumers are dropped
// with what they have, and some are processes that are killed. It goes on until nearly all is
// acknowledged.
func TestNoItemIsLostWhileConsumersDie(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{NoFsync: true, HeapMB: 1024, Patience: siegePatience})
	for _, order := range []Order{Parallel, Strict} {
		t.Run(string(order), func(t *testing.T) {
			s := &ensembleRun{Ensemble: e, history: newHistory(order), t: t, root: "/siege-" + string(order),
				rand: rand.New(rand.NewPCG(rand.Uint64(), 1)), struck: map[string]int{}}
			s.run()
		})
	}
}

// ensembleRun is one run on real servers.
type ensembleRun struct {
	*ensemble.Ensemble
	*history
	t      *testing.T
	root   string
	rand   *rand.Rand
	struck map[string]int

	producers, others sync.WaitGroup
	links             []*links // of the producers
	alive             []*consumerProcess
	repair            sync.Mutex // held while a server is down
}

func (s *ensembleRun) run() {
	batches := *siegeItems / siegeProducers / siegeBatch
	require.Positive(s.t, batches, "-ensemble.items=%d are too few", *siegeItems)
	began := time.Now()
	for p := range siegeProducers {
		s.producer(p, batches)
	}
	for range siegeConsumers {
		s.startConsumer()
	}
	for range siegeProcesses {
		s.startProcess()
	}
	s.injectFaults()
	s.finish()
	s.t.Logf("%v", s.history)
	s.t.Logf("%v; %v", s, time.Since(began).Round(time.Second))
}

// open connects over links of its own.
func (s *ensembleRun) open(l *links) (*framework.Client, *Queue[string]) {
	ctx, cancel := context.WithTimeout(context.Background(), siegePatience)
	defer cancel()
	c, err := framework.Connect(ctx, ensembleConfig(l.addrs(), s.root),
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(s.t, err)
	return c, New(c, "/q", codec.Text(), ensembleOptions(s.order)...)
}

func ensembleConfig(servers []string, root string) framework.Config {
	return framework.Config{Servers: servers, Root: root, SessionTimeout: siegeTimeout, DialTimeout: siegeTimeout / 2}
}

func ensembleOptions(o Order) []Option {
	return []Option{WithOrder(o), segmentSize(400), WithMaxInFlight(2 * handful), WithPrefetch(handful)}
}

func (s *ensembleRun) producer(p, batches int) {
	l := s.link()
	s.links = append(s.links, l)
	c, q := s.open(l)
	r := rand.New(rand.NewPCG(s.rand.Uint64(), 1))
	s.producers.Go(func() {
		s.putBatches(q, p, batches, siegeBatch, 400*time.Millisecond, r)
		_ = q.Close(context.Background()) // whatever is left of it, all was put
		_ = c.Close(context.Background())
	})
}

// rage breaks things until nearly all is acknowledged, and mends them.
func (s *ensembleRun) injectFaults() {
	isPut := make(chan struct{})
	go func() { s.producers.Wait(); close(isPut) }()
	for done := false; !done; {
		_, before := s.counts()
		pause(s.t.Context(), time.Duration(s.rand.IntN(700))*time.Millisecond)
		s.awaitProgress(before)
		s.injectFault()
		select {
		case <-isPut:
			all, acked := s.counts()
			done = acked >= all*19/20
		case <-s.t.Context().Done():
			return
		default:
		}
	}
	s.repair.Lock() // the last one that was struck is back
	defer s.repair.Unlock()
	for _, l := range s.links {
		l.heal()
	}
	for _, b := range s.alive {
		b.links.heal()
	}
	require.NoError(s.t, s.Await(context.Background()))
}

// awaitProgress waits until more than so many items are acknowledged, or all are. All faults mend
// by themselves, so this comes. On a busy machine, faults that do not wait come faster than the
// consumers that they replace can connect, and the run does not end.
func (s *ensembleRun) awaitProgress(before int) {
	for end := time.Now().Add(siegePatience); time.Now().Before(end) &&
		s.t.Context().Err() == nil; pause(s.t.Context(), 20*time.Millisecond) {
		if all, acked := s.counts(); acked > before || acked == all { // the latter before the producers put more
			return
		}
	}
}

// injectFault breaks one server, link, session or process.
func (s *ensembleRun) injectFault() {
	i := s.rand.IntN(len(s.alive))
	l := s.alive[i].links
	if s.rand.IntN(2) == 0 {
		l = s.links[s.rand.IntN(len(s.links))]
	}
	switch s.rand.IntN(10) {
	case 0, 1:
		s.hit("connections reset", l.reset, nil)
	case 2:
		s.hit("links cut", l.cut, l.heal)
	case 3:
		s.hit("links black-holed", l.hold, l.heal)
	case 4:
		s.hit("sessions expired", l.cut, func() { pause(context.Background(), siegeTimeout); l.heal() })
	case 5, 6:
		s.hit("replies lost", func() { l.loseReplies(time.Duration(s.rand.IntN(15)) * time.Millisecond) }, nil)
	case 7:
		s.restart(s.rand.IntN(s.Size()))
	default:
		s.replace(i)
	}
}

// hit breaks something, and mends it later.
func (s *ensembleRun) hit(what string, injectFault, mend func()) {
	s.struck[what]++
	injectFault()
	if mend != nil {
		later := time.Duration(s.rand.Int64N(int64(siegeTimeout)))
		s.others.Go(func() { pause(context.Background(), later); mend() })
	}
}

// restart kills a server and starts it again, unless another one is still away.
func (s *ensembleRun) restart(i int) {
	if !s.repair.TryLock() {
		return
	}
	s.struck["servers killed"]++
	away := time.Duration(s.rand.IntN(1000)) * time.Millisecond
	s.others.Go(func() {
		defer s.repair.Unlock()
		err := s.Kill(i)
		pause(context.Background(), away)
		if err == nil {
			err = s.Restart(i)
		}
		if err == nil {
			err = s.Await(context.Background())
		}
		if err != nil {
			s.fault("server %d: %v", i, err)
		}
	})
}

// finish waits until the queue is empty, and checks the books.
func (s *ensembleRun) finish() {
	s.others.Wait() // no fault strikes any more
	l := s.link()
	c, q := s.open(l)
	defer func() { _ = c.Close(context.Background()) }()
	defer func() { _ = q.Close(context.Background()) }()
	empty := func() bool {
		n, err := q.Counts(s.t.Context())
		return err == nil && n == Counts{}
	}
	for end := time.Now().Add(siegePatience); !empty() && time.Now().Before(end); {
		pause(s.t.Context(), 200*time.Millisecond)
	}
	for _, b := range s.alive {
		b.leave()
	}
	require.True(s.t, empty(), "items are left")
	s.check(s.t)
}

func (s *ensembleRun) String() string {
	var parts []string
	for what, n := range s.struck {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
