package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

func init() { newWorkload["ledger"] = newLedgerWorkload }

// ledgerWorkload is a ledger whose steps are executed by the holder of a mutex, again and again.
type ledgerWorkload struct {
	workloadBase

	mu       sync.Mutex
	uuid     string           // of the ledger that is on the servers
	recorded map[string]int64 // results on the servers, by the steps' keys
	opened   int64            // the highest token of an executor that has opened the ledger
}

// ledgerSteps are the names of the steps.
var ledgerSteps = []string{"copy", "check", "switch", "tell"}

func newLedgerWorkload(sim *simulation, spec workloadSpec) workload {
	s := &ledgerWorkload{workloadBase: workloadBase{sim, spec}, recorded: map[string]int64{}}
	sim.zk.Observe(s.observe)
	return s
}

func (s *ledgerWorkload) ledgerPath() string { return s.path() + "/steps" }

// mayBeDeleted lets an operator take the lock away from an executor, which finds out some time
// later.
func (s *ledgerWorkload) mayBeDeleted(node string) bool {
	return strings.HasPrefix(node, s.path()+"/lock/")
}

// observe follows what is on the servers.
func (s *ledgerWorkload) observe(q zktest.Request) {
	if q.Op != zktest.OpMulti || q.Err != 0 ||
		slices.ContainsFunc(q.Parts, func(part zktest.Request) bool { return part.Err != 0 }) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range q.Parts {
		name, isStep := strings.CutPrefix(part.Path, s.ledgerPath()+"/step-")
		switch {
		case part.Path == s.ledgerPath() && part.Op == zktest.OpCreate:
			s.uuid = decodeRecord[struct{ ID string }](part.Data).ID
		case part.Path == s.ledgerPath() && part.Op == zktest.OpDelete:
			s.uuid = ""
		case isStep && part.Op == zktest.OpDelete:
			delete(s.recorded, s.uuid+"-"+name)
		case isStep && part.Op == zktest.OpCreate:
			r := decodeRecord[struct{ Result, Token int64 }](part.Data)
			s.recorded[s.uuid+"-"+name] = r.Result
			if r.Token < s.opened {
				s.sim.addViolation(s.path(), "zombie",
					"step %s was recorded with token %d after token %d had opened the ledger", name, r.Token, s.opened)
			}
		}
	}
}

func decodeRecord[T any](data []byte) (record T) {
	if err := json.Unmarshal(data, &record); err != nil {
		panic(err)
	}
	return record
}

func (s *ledgerWorkload) runActor(a *actor) {
	for a.nextStep() {
		if oneIn(a.rng, 10) {
			a.lagServer()
		}
		ctx, cancel := a.callContext()
		lease, err := locks.NewMutex(a.client, s.path()+"/lock").Lock(ctx)
		cancel()
		a.waitWhileFrozen()
		if err != nil {
			if !a.isExpectedError(ctx, err, framework.ErrSessionLost) && !failure.IsTransient(err) {
				s.sim.addViolation(s.path(), "errors", "%s cannot lock: %v", a.name, err)
			}
			continue
		}
		s.execute(a, lease)
		_ = lease.Release(a.ctx)
		a.waitWhileFrozen()
	}
}

// execute opens the ledger and takes its steps until one fails.
func (s *ledgerWorkload) execute(a *actor, lease *locks.Lease) {
	ledger := workflow.NewLedger(a.client, s.ledgerPath())
	ctx, cancel := a.callContext()
	opened, err := ledger.Open(ctx, lease)
	a.waitWhileFrozen()
	s.check(a, ctx, lease, "open", err)
	cancel()
	if err != nil {
		return
	}
	s.noteOpened(lease)
	for i := 0; i < len(ledgerSteps); i++ {
		name := ledgerSteps[i]
		ctx, cancel := a.callContext()
		key := opened.UUID() + "-" + name
		got, err := workflow.Step(ctx, opened, name,
			func(ctx context.Context, k workflow.Key) (int64, error) { return s.effect(a, ctx, lease, name, k) },
			workflow.WithStepAttempts(1+a.rng.IntN(3), time.Second))
		a.waitWhileFrozen()
		s.check(a, ctx, lease, "step "+name, err)
		cancel()
		switch {
		case err == nil:
			s.checkResult(a, lease, key, got)
		case lease.Err() != nil || oneIn(a.rng, 3):
			return
		case oneIn(a.rng, 2): // once more
			i--
		}
	}
	ctx, cancel = a.callContext()
	defer cancel()
	switch a.rng.IntN(3) {
	case 0:
		err = ledger.Remove(ctx, lease)
	case 1:
		err = ledger.Forget(ctx, lease, pickOne(a.rng, ledgerSteps...), pickOne(a.rng, ledgerSteps...))
	}
	a.waitWhileFrozen()
	s.check(a, ctx, lease, "remove", err)
}

// noteOpened notes the token of an executor that stands and has opened the ledger.
func (s *ledgerWorkload) noteOpened(lease *locks.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease.Err() == nil && !s.sim.isEndedByOperator(lease.Session(), lease.Node()) {
		s.opened = max(s.opened, lease.Token())
	}
}

var errEffect = errors.New("the effect failed")

// effect is what a step does. It checks that the step has no record.
func (s *ledgerWorkload) effect(a *actor, ctx context.Context, lease *locks.Lease, name string,
	key workflow.Key) (int64, error) {
	a.sleep(ctx, durationBetween(a.rng, 0, pickOne(a.rng, time.Millisecond, time.Second, 5*time.Second)))
	s.sim.countOperation("ledger")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, done := s.recorded[key.ID]; done && lease.Err() == nil &&
		!s.sim.isEndedByOperator(lease.Session(), lease.Node()) {
		s.sim.addViolation(s.path(), "repeated", "%s runs step %s of %s, which has a record", a.name, name, key.ID)
	}
	if oneIn(a.rng, 5) {
		return 0, errEffect
	}
	return int64(s.sim.nextNumber()), nil
}

// checkResult checks that a step's result is the one that is recorded.
func (s *ledgerWorkload) checkResult(a *actor, lease *locks.Lease, key string, got int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want, ok := s.recorded[key]; (!ok || want != got) && lease.Err() == nil &&
		!s.sim.isEndedByOperator(lease.Session(), lease.Node()) {
		s.sim.addViolation(s.path(), "recorded", "%s gets %d for %s, the servers have %d (%v)", a.name, got,
			key, want, ok)
	}
}

// check checks that a call failed for a reason.
func (s *ledgerWorkload) check(a *actor, ctx context.Context, lease *locks.Lease, what string, err error) {
	s.sim.history.add(s.path(), "%s, token %d: %s: %s", a.name, lease.Token(), what, outcome(err))
	byOperator := s.sim.isEndedByOperator(lease.Session(), lease.Node())
	switch {
	case err == nil, errors.Is(err, errEffect):
	case errors.Is(err, workflow.ErrEnded) && (lease.Err() != nil || byOperator):
	case byOperator && (errors.Is(err, framework.ErrConflict) || errors.Is(err, workflow.ErrRemoved)):
	case !a.isExpectedError(ctx, err):
		s.sim.addViolation(s.path(), "errors", "%s: %s: %v", a.name, what, err)
	}
}

// checkAtEnd executes the ledger to its end: what is recorded is known, and the rest can be
// recorded.
func (s *ledgerWorkload) checkAtEnd() {
	if err := s.executeToEnd(context.Background(), s.sim.operator); err != nil {
		s.sim.addViolation(s.path(), "end", "%v", err)
	}
}

func (s *ledgerWorkload) executeToEnd(ctx context.Context, c *framework.Client) error {
	lease, err := locks.NewMutex(c, s.path()+"/lock").Lock(ctx)
	if err != nil {
		return err
	}
	opened, err := workflow.NewLedger(c, s.ledgerPath()).Open(ctx, lease)
	if err != nil {
		return err
	}
	for _, name := range ledgerSteps {
		s.mu.Lock()
		want, done := s.recorded[opened.UUID()+"-"+name]
		s.mu.Unlock()
		if done != opened.IsRecorded(name) {
			return fmt.Errorf("step %s has a record on the servers: %v; the ledger says the opposite", name, done)
		}
		got, err := workflow.Step(ctx, opened, name,
			func(context.Context, workflow.Key) (int64, error) { return want, nil })
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("step %s returns %d, %d is recorded", name, got, want)
		}
	}
	return lease.Release(ctx)
}
