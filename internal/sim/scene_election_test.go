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

func init() { makers["election"] = newElectionScene }

// electionScene is one election: each actor is a candidate, and some observe.
type electionScene struct {
	base
	book     *ledger
	register string

	mu     sync.Mutex
	number int64 // the highest of all terms
	terms  map[int64]string
}

func newElectionScene(w *world, spec sceneSpec) scene {
	s := &electionScene{base: base{w, spec}, book: newLedger(w, spec.path, spec.path), register: spec.path + "~register", terms: map[int64]string{}}
	w.operate(func(ctx context.Context, c *framework.Client) error {
		return c.Create(ctx, s.register, nil, framework.Persistent)
	})
	return s
}

func (s *electionScene) ledgers() []*ledger { return []*ledger{s.book} }

// mayDelete allows for candidates' nodes.
func (s *electionScene) mayDelete(node string) bool { return strings.HasPrefix(node, s.path()+"/") }

// stays allows for one watch of each session, which nobody waits for any more: on the missing directory of
// the candidates, or of those who wait with a priority.
func (s *electionScene) stays(path string) bool {
	return path == s.path() || path == s.path()+"~waiting"
}

// options draws how a candidate is.
func (s *electionScene) options(a *actor) []election.Option {
	all := []election.Option{election.WithID(a.name)}
	if oneIn(a.r, 3) {
		all = append(all, election.WithMaxTerm(between(a.r, time.Second, time.Minute)))
	}
	if oneIn(a.r, 3) {
		all = append(all, election.WithMetadata(election.Metadata{"of": a.name}))
	}
	if oneIn(a.r, 3) {
		all = append(all, election.WithPriority(a.r.IntN(4), between(a.r, 0, 5*time.Second)))
	}
	if oneIn(a.r, 4) {
		all = append(all, election.WithStepDown(election.AtSuspended))
	}
	return all
}

func (s *electionScene) play(a *actor) {
	e := election.New(a.client, s.path(), s.options(a)...)
	if oneIn(a.r, 3) {
		s.w.actors.Go(func() { s.observe(a, e) })
	}
	for a.goOn() {
		if oneIn(a.r, 2) {
			s.lead(a, e)
		} else {
			s.campaign(a, e)
		}
	}
}

// campaign is a candidate by hand.
func (s *electionScene) campaign(a *actor, e *election.Election) {
	ctx, cancel := a.patience()
	defer cancel()
	term, err := e.Campaign(ctx)
	late := a.gate()
	if err != nil {
		s.check(a, ctx, "campaign", err)
		return
	}
	s.began(a, term, late)
	s.reign(a, term.Context(), term)
	s.handOn(a, term)
	end, cancel := a.patience()
	defer cancel()
	s.w.h.note(s.path(), "%s resigns term %d", a.name, term.Number())
	_ = term.Resign(end)
}

// lead is a candidate for some terms.
func (s *electionScene) lead(a *actor, e *election.Election) {
	ctx, cancel := a.patience()
	defer cancel()
	left := 1 + a.r.IntN(3)
	err := e.Lead(ctx, func(ctx context.Context, term *election.Term) error {
		s.began(a, term, a.gate())
		s.reign(a, ctx, term)
		if oneIn(a.r, 3) {
			s.handOn(a, term)
		}
		s.w.h.note(s.path(), "%s has led in term %d", a.name, term.Number())
		if left--; left == 0 || a.w.isOver() {
			return election.ErrStop
		}
		if oneIn(a.r, 5) {
			return errors.New("some trouble")
		}
		return nil
	})
	a.gate()
	if err != nil {
		s.check(a, ctx, "lead", err)
	}
}

func (s *electionScene) check(a *actor, ctx context.Context, what string, err error) {
	s.w.h.note(s.path(), "%s cannot %s: %v", a.name, what, err)
	if !a.excused(ctx, err) {
		s.w.violate(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// began notes a term, unless it was over before its leader could know of it.
func (s *electionScene) began(a *actor, term *election.Term, late bool) {
	s.w.count("term")
	if late && term.Err() != nil {
		return
	}
	s.book.granted(&hold{who: a, mark: mark{term.Token(), 0}, session: term.Session(), node: term.Node(), ctx: term.Context(), err: term.Err})
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.terms[term.Number()]; other != "" {
		s.w.violate(s.path(), "terms", "%s and %s have both the term %d", a.name, other, term.Number())
	}
	s.terms[term.Number()] = a.name
	if term.Number() < s.number && !s.w.isDoomed(term.Session(), term.Node()) {
		s.w.violate(s.path(), "terms", "%s has term %d after %d", a.name, term.Number(), s.number)
	}
	s.number = max(s.number, term.Number())
}

// reign leads for some time, and writes under the term's guard.
func (s *electionScene) reign(a *actor, ctx context.Context, term *election.Term) {
	for range a.r.IntN(3) {
		a.rest(ctx, pick(a.r, 0, between(a.r, 0, time.Second), between(a.r, 0, s.w.plan.timeout)))
		end, cancel := a.patience()
		var err error
		if oneIn(a.r, 3) {
			err = term.Update(end, election.Metadata{"at": fmt.Sprint(s.w.next())})
		} else {
			data := []byte(strconv.FormatInt(term.Token(), 10))
			_, err = a.client.Multi(end, term.Guard(), framework.CreateOp(s.register+"/w-", data, framework.PersistentSequential))
		}
		cancel()
		a.gate()
		s.w.count("guarded write")
		s.w.h.note(s.path(), "%s writes in term %d: %s", a.name, term.Number(), outcome(err))
	}
}

// handOn may transfer the term.
func (s *electionScene) handOn(a *actor, term *election.Term) {
	if !oneIn(a.r, 3) {
		return
	}
	to := fmt.Sprintf("p%d%c", a.r.IntN(s.w.plan.processes), 'a'+a.r.IntN(s.spec.actors))
	ctx, cancel := a.patience()
	defer cancel()
	err := term.TransferTo(ctx, to)
	a.gate()
	s.w.count("transfer")
	s.w.h.note(s.path(), "%s transfers term %d to %s: %s", a.name, term.Number(), to, outcome(err))
}

// observe checks that leaders come in order.
func (s *electionScene) observe(a *actor, e *election.Election) {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	s.w.tasks.Go(func() {
		select {
		case <-s.w.over:
			cancel()
		case <-ctx.Done():
		}
	})
	last := int64(0)
	for c, err := range e.Observe(ctx) {
		switch {
		case err != nil && !a.excused(ctx, err):
			s.w.violate(s.path(), "errors", "%s cannot observe: %v", a.name, err)
		case c != nil && c.Number != 0 && c.Number < last:
			s.w.violate(s.path(), "observers", "%s is told of term %d after %d", a.name, c.Number, last)
		case c != nil:
			last = max(last, c.Number)
			s.w.count("leader observed")
		}
	}
}

func (s *electionScene) settled() { s.w.inOrder(s.path(), s.register) }
