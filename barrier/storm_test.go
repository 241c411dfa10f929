package barrier_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/zktest"
)

var stormRounds = flag.Int64("storm.rounds", 1000, "rounds that the storm lasts")

// TestRoundsInAStorm lets five members go through many rounds of one barrier, while they die at any
// moment and are started again, their contexts end, links break, replies are lost and the server
// restarts.
//
// What must hold: no two rounds are inside at once, as far as living members can tell; nobody
// returns from Leave before all of its round have left or are dead; a round has exactly as many
// members as the barrier, or some of them have died or do not know; nothing is left at the end.
//
// With -short it has one seed.
func TestRoundsInAStorm(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				(&storm{world: w, r: rand.New(rand.NewPCG(seed, 9)), rounds: map[int64]*roundLog{},
					killed: map[framework.SessionID]bool{}}).rage()
			})
		})
	}
}

const stormMembers = 5

type storm struct {
	*world
	r *rand.Rand

	mu     sync.Mutex
	made   int
	rounds map[int64]*roundLog
	last   int64
	whole  int64 // rounds that all members have entered
	deaths int
	cut    int                          // contexts that have ended a wait
	killed map[framework.SessionID]bool // sessions that an operator has ended: their members hear of it only then
	// vague counts members whose Enter could not report whether its round had begun.
	vague int
}

// roundLog is what is known of one round.
type roundLog struct {
	entered int
	inside  map[*barrier.Round]framework.SessionID // the member's session
}

func (s *storm) int(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

func (s *storm) rage() {
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range stormMembers {
		all.Go(s.member)
	}
	all.Go(func() { s.trouble(stop) })
	for s.reached() < *stormRounds {
		time.Sleep(time.Second)
	}
	close(stop)
	all.Wait()
	time.Sleep(3 * timeout)
	s.nobody()
	for n := range s.rounds {
		s.close(n)
	}
	s.t.Logf("%d rounds, %d of them whole, %d deaths, %d waits cut short, %d outcomes unknown, %d members",
		s.last, s.whole, s.deaths, s.cut, s.vague, s.made)
	require.Greater(s.t, s.deaths, int(*stormRounds/50))
	require.Greater(s.t, s.whole, *stormRounds/2)
}

func (s *storm) reached() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// member lives again and again until there were enough rounds.
func (s *storm) member() {
	for s.reached() < *stormRounds {
		s.life()
	}
}

// life is one process, which may die.
func (s *storm) life() {
	s.mu.Lock()
	s.made++
	link := s.Link(fmt.Sprint("m", s.made))
	s.mu.Unlock()
	ctx, die := context.WithCancel(context.Background())
	defer die()
	c, err := framework.Connect(ctx, framework.Config{Servers: s.Servers(), SessionTimeout: timeout},
		framework.WithDialer(link.DialContext), framework.WithTimeClock(),
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	if s.int(3) == 0 { // it dies at some moment, at once or as a crash does
		t := time.AfterFunc(time.Duration(s.int(20_000))*time.Millisecond, func() {
			if s.int(2) == 0 {
				link.Cut()
			}
			die()
		})
		defer t.Stop()
	}
	b := barrier.NewDoubleBarrier(c, path, stormMembers)
	for s.reached() < *stormRounds && ctx.Err() == nil && s.round(ctx, c, b, link) {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths++
}

// round is one round, or a try of one; false when this life is over.
func (s *storm) round(ctx context.Context, c *framework.Client, b *barrier.DoubleBarrier, link *zktest.Link) bool {
	patience := time.Hour
	if s.int(10) == 0 {
		patience = time.Duration(s.int(50_000)) * time.Microsecond
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := b.Enter(limited)
	switch {
	case err == nil:
	case errors.Is(err, barrier.ErrTooMany):
		s.t.Errorf("%v: there are never more members than the barrier has", err)
		return false
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cut++; errors.Is(err, framework.ErrSuspended) {
			s.vague++
		}
		return true
	default:
		return ctx.Err() == nil && failure.IsTransient(err)
	}
	session, err := c.Session(ctx)
	if err != nil {
		return false // it dies inside
	}
	s.entered(r, session.ID())
	if s.int(4) == 0 {
		time.Sleep(time.Duration(s.int(20)) * time.Millisecond)
	}
	if ctx.Err() != nil || s.int(60) == 0 { // it dies inside
		if s.int(2) == 0 {
			link.Cut()
		}
		return false
	}
	return s.leave(ctx, r)
}

func (s *storm) entered(r *barrier.Round, session framework.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.rounds[r.Number()]
	if log == nil {
		log = &roundLog{inside: map[*barrier.Round]framework.SessionID{}}
		s.rounds[r.Number()] = log
	}
	log.inside[r] = session
	if log.entered++; log.entered > stormMembers {
		s.t.Errorf("round %d has %d members", r.Number(), log.entered)
	}
	if r.Number() < s.last {
		s.t.Errorf("round %d was entered after round %d", r.Number(), s.last)
	}
	s.last = r.Number()
	for n, other := range s.rounds {
		for in, its := range other.inside {
			switch {
			case n == r.Number():
			case in.Err() == nil && !s.killed[its]:
				s.t.Errorf("round %d was entered while a member was inside round %d", r.Number(), n)
			default:
				delete(other.inside, in)
			}
		}
		if n < r.Number()-1 {
			s.close(n)
		}
	}
}

// close counts a round that is over.
func (s *storm) close(n int64) {
	if s.rounds[n].entered == stormMembers {
		s.whole++
	}
	delete(s.rounds, n)
}

func (s *storm) leave(ctx context.Context, r *barrier.Round) bool {
	alive := r.Err() == nil
	s.mu.Lock()
	if log := s.rounds[r.Number()]; log != nil {
		delete(log.inside, r) // from here on the others may leave
	}
	s.mu.Unlock()
	err := r.Leave(ctx)
	if err != nil {
		return ctx.Err() == nil && alive && failure.IsTransient(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.rounds[r.Number()]
	if log == nil { // it was over long before
		return true
	}
	for in, its := range log.inside {
		if in.Err() == nil && !s.killed[its] {
			s.t.Errorf("a member has left round %d while another one is inside", r.Number())
		}
	}
	return true
}

// trouble loses replies and restarts the server.
func (s *storm) trouble(stop chan struct{}) {
	ops := []zktest.Op{zktest.OpMulti, zktest.OpSetData, zktest.OpGetData, zktest.OpGetChildren2}
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(s.int(3000)) * time.Millisecond):
		}
		switch s.int(8) {
		case 0:
			s.Restart()
		case 1:
			if all := s.Sessions(); len(all) > 0 {
				id := all[s.int(len(all))].ID
				s.mu.Lock()
				s.killed[id] = true
				s.mu.Unlock()
				_ = s.Expire(id) // it may be gone by now
			}
		default:
			s.DropReply(1+s.int(5), zktest.Match{Op: ops[s.int(len(ops))], Path: path})
		}
	}
}
