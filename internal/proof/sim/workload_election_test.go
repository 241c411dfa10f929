package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

func init() { newWorkload["election"] = newElectionWorkload }

// electionWorkload is one election. Each actor is a candidate, and some observe.
type electionWorkload struct {
	workloadBase
	checker  *holdChecker
	register string

	mu            sync.Mutex
	highestNumber int64 // the highest term number
	terms         map[int64]string
}

func newElectionWorkload(sim *simulation, spec workloadSpec) workload {
	s := &electionWorkload{workloadBase: workloadBase{sim, spec}, checker: newHoldChecker(sim, spec.path, spec.path),
		register: spec.path + "~register", terms: map[int64]string{}}
	sim.asOperator(func(ctx context.Context, c *framework.Client) error {
		return c.Create(ctx, s.register, nil, framework.Persistent)
	})
	return s
}

func (s *electionWorkload) holdCheckers() []*holdChecker { return []*holdChecker{s.checker} }

// mayBeDeleted allows candidates' nodes.
func (s *electionWorkload) mayBeDeleted(node string) bool {
	return strings.HasPrefix(node, s.path()+"/")
}

// mayRemain allows one watch of each session: on the missing directory of the candidates, or of the
// candidates that wait with a priority.
func (s *electionWorkload) mayRemain(path string) bool {
	return path == s.path() || path == s.path()+"~waiting"
}

// options draws a candidate's options.
func (s *electionWorkload) options(a *actor) []election.Option {
	all := []election.Option{election.WithID(a.name)}
	if oneIn(a.rng, 3) {
		all = append(all, election.WithMaxTerm(durationBetween(a.rng, time.Second, time.Minute)))
	}
	if oneIn(a.rng, 3) {
		all = append(all, election.WithMetadata(map[string]string{"of": a.name}))
	}
	if oneIn(a.rng, 3) {
		all = append(all, election.WithPriority(a.rng.IntN(4), durationBetween(a.rng, 0, 5*time.Second)))
	}
	if oneIn(a.rng, 4) {
		all = append(all, election.WithStepDown(election.AtSuspended))
	}
	return all
}

func (s *electionWorkload) runActor(a *actor) {
	e := election.New(a.client, s.path(), s.options(a)...)
	if oneIn(a.rng, 3) {
		s.sim.actors.Go(func() { s.observe(a, e) })
	}
	for a.nextStep() {
		if oneIn(a.rng, 2) {
			s.lead(a, e)
		} else {
			s.campaign(a, e)
		}
	}
}

// campaign campaigns once, and resigns.
func (s *electionWorkload) campaign(a *actor, e *election.Election) {
	ctx, cancel := a.callContext()
	defer cancel()
	term, err := e.Campaign(ctx)
	late := a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, ctx, "campaign", err)
		return
	}
	s.addTerm(a, term, late)
	s.writeInTerm(a, term.Context(), term)
	s.maybeTransfer(a, term)
	end, cancel := a.callContext()
	defer cancel()
	s.sim.history.add(s.path(), "%s resigns term %d", a.name, term.Number())
	_ = term.Resign(end)
}

// lead runs a leader function for some terms.
func (s *electionWorkload) lead(a *actor, e *election.Election) {
	ctx, cancel := a.callContext()
	defer cancel()
	left := 1 + a.rng.IntN(3)
	err := e.Lead(ctx, func(ctx context.Context, term *election.Term) error {
		s.addTerm(a, term, a.waitWhileFrozen())
		s.writeInTerm(a, ctx, term)
		if oneIn(a.rng, 3) {
			s.maybeTransfer(a, term)
		}
		s.sim.history.add(s.path(), "%s has led in term %d", a.name, term.Number())
		if left--; left == 0 || a.sim.programEnded() {
			return election.ErrStop
		}
		if oneIn(a.rng, 5) {
			return errors.New("the term's work failed")
		}
		return nil
	})
	a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, ctx, "lead", err)
	}
}

func (s *electionWorkload) checkError(a *actor, ctx context.Context, what string, err error) {
	s.sim.history.add(s.path(), "%s cannot %s: %v", a.name, what, err)
	if !a.isExpectedError(ctx, err) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// addTerm checks a term, unless it had ended before its leader could know.
func (s *electionWorkload) addTerm(a *actor, term *election.Term, late bool) {
	s.sim.countOperation("term")
	if late && term.Err() != nil {
		return
	}
	s.checker.addGrant(&hold{holder: a, token: grantToken{term.Token(), 0}, session: term.Session(),
		node: term.Node(),
		ctx:  term.Context(), err: term.Err})
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.terms[term.Number()]; other != "" {
		s.sim.addViolation(s.path(), "terms", "%s and %s both have the term number %d", a.name, other, term.Number())
	}
	s.terms[term.Number()] = a.name
	if term.Number() < s.highestNumber && !s.sim.isEndedByOperator(term.Session(), term.Node()) {
		s.sim.addViolation(s.path(), "terms", "%s has term %d after %d", a.name, term.Number(), s.highestNumber)
	}
	s.highestNumber = max(s.highestNumber, term.Number())
}

// writeInTerm leads for some time, and writes under the term's guard.
func (s *electionWorkload) writeInTerm(a *actor, ctx context.Context, term *election.Term) {
	for range a.rng.IntN(3) {
		a.sleep(ctx, pickOne(a.rng, 0, durationBetween(a.rng, 0, time.Second),
			durationBetween(a.rng, 0, s.sim.plan.sessionTimeout)))
		end, cancel := a.callContext()
		var err error
		if oneIn(a.rng, 3) {
			err = term.SetMetadata(end, map[string]string{"at": fmt.Sprint(s.sim.nextNumber())})
		} else {
			data := []byte(strconv.FormatInt(term.Token(), 10))
			_, err = a.client.Multi(end, term.Guard(),
				framework.CreateOp(s.register+"/w-", data, framework.PersistentSequential))
		}
		cancel()
		a.waitWhileFrozen()
		s.sim.countOperation("guarded write")
		s.sim.history.add(s.path(), "%s writes in term %d: %s", a.name, term.Number(), outcome(err))
	}
}

// maybeTransfer sometimes transfers the term.
func (s *electionWorkload) maybeTransfer(a *actor, term *election.Term) {
	if !oneIn(a.rng, 3) {
		return
	}
	to := fmt.Sprintf("p%d%c", a.rng.IntN(s.sim.plan.processes), 'a'+a.rng.IntN(s.spec.actors))
	ctx, cancel := a.callContext()
	defer cancel()
	err := term.TransferTo(ctx, to)
	a.waitWhileFrozen()
	s.sim.countOperation("transfer")
	s.sim.history.add(s.path(), "%s transfers term %d to %s: %s", a.name, term.Number(), to, outcome(err))
}

// observe checks that leaders are observed in order.
func (s *electionWorkload) observe(a *actor, e *election.Election) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	s.sim.tasks.Go(func() {
		select {
		case <-s.sim.programEnd:
			cancel()
		case <-ctx.Done():
		}
	})
	last := int64(0)
	for c, err := range e.Follow(ctx) {
		switch {
		case err != nil && !a.isExpectedError(ctx, err):
			s.sim.addViolation(s.path(), "errors", "%s cannot observe: %v", a.name, err)
		case c != nil && c.Number != 0 && c.Number < last:
			s.sim.addViolation(s.path(), "observers", "%s observes term %d after %d", a.name, c.Number, last)
		case c != nil:
			last = max(last, c.Number)
			s.sim.countOperation("leader observed")
		}
	}
}

func (s *electionWorkload) checkAtEnd() { s.sim.checkWriteOrder(s.path(), s.register) }
