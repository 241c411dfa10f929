package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
)

// barrierRounds is W7.
func barrierRounds(s settings) error {
	clients, err := openAll(s, orDefault(s.c, 8))
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	p := &barrierMembers{s: s, members: int64(len(clients)), warm: int64(orDefault(s.n, 300)) / 3,
		rounds: int64(orDefault(s.n, 300))}
	p.starts = make([]time.Time, p.rounds)
	errs := make(chan error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		b := barrier.NewDoubleBarrier(c, root+"/w7", len(clients))
		wg.Go(func() {
			if err := p.pass(b, i == 0); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	took := time.Since(p.starts[0])
	sent := s.traffic().since(p.before)
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	return newResult(s, "lockstep", s.params(map[string]any{"c": len(clients), "reuse": true}), int(p.rounds), took,
		p.laps()).requests(sent).print()
}

// barrierMembers runs rounds of one double barrier and checks that all members are inside before
// one leaves.
type barrierMembers struct {
	s                     settings
	members, warm, rounds int64
	entering, leaving     atomic.Int64
	starts                []time.Time // of the first member's measured rounds
	before                traffic
}

var errEarly = errors.New("a member passed the barrier before all had entered")

// pass runs all rounds of one member. The first member measures the rounds.
func (p *barrierMembers) pass(b *barrier.DoubleBarrier, first bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // so that the others end too if one fails
	defer cancel()
	for round := range p.warm + p.rounds {
		if first && round == p.warm {
			p.before = p.s.traffic()
		}
		if first && round >= p.warm {
			p.starts[round-p.warm] = time.Now()
		}
		p.entering.Add(1)
		r, err := b.Enter(ctx)
		if err != nil {
			return err
		}
		if p.entering.Load() < (round+1)*p.members {
			return errEarly
		}
		p.leaving.Add(1)
		if err := r.Leave(ctx); err != nil {
			return err
		}
		if p.leaving.Load() < (round+1)*p.members {
			return errEarly
		}
	}
	return nil
}

// laps returns the times from the start of one round to the start of the next.
func (p *barrierMembers) laps() []time.Duration {
	var laps []time.Duration
	for i, t := range p.starts[1:] {
		laps = append(laps, t.Sub(p.starts[i]))
	}
	return laps
}
