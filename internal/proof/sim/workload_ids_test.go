package sim

import (
	"context"
	"errors"
	mathbits "math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/failure"
)

func init() { newWorkload["ids"] = newIDsWorkload }

// idsWorkload is workers that give ids. A millisecond has room for 64 ids of a slot only, so that
// workers soon use each other's times if anything is wrong.
type idsWorkload struct {
	workloadBase

	mu    sync.Mutex
	given map[int64]uint64 // a bitmap of the ids, in words of 64
}

// idSlots is how many slots a path has.
const idSlots = 1 << 16

// simEpoch is the epoch of ids: it lies before the earliest time that the ensemble's clock shows.
var simEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

func newIDsWorkload(sim *simulation, spec workloadSpec) workload {
	return &idsWorkload{workloadBase: workloadBase{sim, spec}, given: map[int64]uint64{}}
}

// runActor uses one worker after the other.
func (s *idsWorkload) runActor(a *actor) {
	most := 500 * a.sim.plan.processes * max(1, int(*idCount/tenMillion))
	for a.ctx.Err() == nil && !a.sim.programEnded() {
		w := ids.NewWorker(a.client, s.path(), idSlots, ids.WithEpoch(simEpoch))
		last := int64(-1)
		for a.nextStep() && !oneIn(a.rng, 10) {
			ctx, cancel := a.callContext()
			some := make([]int64, 1+a.rng.IntN(most))
			err := w.Fill(ctx, some)
			a.waitWhileFrozen()
			if err == nil {
				last = s.note(a, last, some)
			} else if !a.isExpectedError(ctx, err) && a.ctx.Err() == nil && !failure.IsTransient(err) &&
				!errors.Is(err, framework.ErrOutcomeUnknown) {
				s.sim.addViolation(s.path(), "errors", "%s gets no ids: %v", a.name, err)
			}
			cancel()
		}
		s.close(a, w)
	}
}

// close gives the slot back. A process that dies leaves it behind.
func (s *idsWorkload) close(a *actor, w *ids.Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	if err := w.Close(ctx); !a.isExpectedError(ctx, err, nil) && a.ctx.Err() == nil {
		s.sim.addViolation(s.path(), "errors", "%s cannot close a worker: %v", a.name, err)
	}
}

// mayBeDeleted lets an operator take a slot away.
func (s *idsWorkload) mayBeDeleted(node string) bool { return strings.HasSuffix(node, "-owner") }

// note checks that ids rise, and that none was given before.
func (s *idsWorkload) note(a *actor, last int64, some []int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sim.countOperation("ids")
	idsGiven.Add(int64(len(some)))
	for i := 0; i < len(some); {
		word, bits := some[i]>>6, uint64(0)
		for ; i < len(some) && some[i]>>6 == word; i++ {
			if some[i] <= last { // so that they differ, too
				s.sim.addViolation(s.path(), "order", "%s gets %d after %d", a.name, some[i], last)
			}
			last = some[i]
			bits |= 1 << (last & 63)
		}
		if both := s.given[word] & bits; both != 0 {
			s.sim.addViolation(s.path(), "unique", "%s gets %d, which was given before", a.name,
				word<<6+int64(mathbits.TrailingZeros64(both)))
			break
		}
		s.given[word] |= bits
	}
	return last
}

// tenMillion is how many ids TestTenMillionIDs gives at least, unless the flag says more.
const tenMillion = 10_000_000

// idsGiven counts the ids of a test.
var idsGiven atomic.Int64

// TestTenMillionIDs are given by twenty processes that are killed, frozen and cut off, while the
// ensemble's clock is set back by up to hours: no two are the same. With the flag -ids there are as
// many; see the Makefile's target ids.
func TestTenMillionIDs(t *testing.T) {
	p := plan{seed: 1, duration: 3 * time.Minute, sessionTimeout: 6 * time.Second, reapInterval: time.Second,
		processes: 20, workloads: []workloadSpec{{"ids", "/ids", 1}}}
	r := newRand(p.seed, "faults")
	for at := time.Duration(0); at < p.duration; at += durationBetween(r, 0, 500*time.Millisecond) {
		f := drawFault(r, p, at)
		f.kind = pickOne(r, lostReply, crashClient, freezeClient, cutLink, expireSession, restartServer)
		p.faults = append(p.faults, f)
		if oneIn(r, 10) {
			p.faults = append(p.faults, fault{kind: wrongClock, at: at, duration: 3 * time.Second, seed: r.Uint64()})
		}
	}
	require.True(t, slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind == wrongClock }))
	idsGiven.Store(0)
	res := run(t, p)
	for _, v := range res.violations {
		t.Error(v)
	}
	require.GreaterOrEqual(t, res.operations["ids"], 2000)
	require.GreaterOrEqual(t, idsGiven.Load(), *idCount)
	t.Logf("%d ids, no two the same; faults: %v", idsGiven.Load(), res.faults)
}
