package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/members"
)

func init() { newWorkload["members"] = newMembersWorkload }

// membersWorkload is a group that all processes join and watch. Their actors tell new loads, and
// cordon, drain and uncordon each other. A restarted process has the ID of its former self.
type membersWorkload struct {
	workloadBase

	mu        sync.Mutex
	drained   map[string]time.Time // when a drain function of an ID has ended last, without an error
	withdrawn map[string]time.Time // when the latest Uncordon of an ID began that has succeeded
}

func newMembersWorkload(sim *simulation, spec workloadSpec) workload {
	return &membersWorkload{workloadBase: workloadBase{sim, spec}, drained: map[string]time.Time{},
		withdrawn: map[string]time.Time{}}
}

// simMember is a process's membership.
type simMember struct {
	group *members.Group
	id    string
	ready chan struct{} // closed when joined is set, or Join has failed

	joined *members.Membership
	first  float64       // the load that it joined with: those of former processes are less
	turn   chan struct{} // has room for one: an update and the list that checks it
}

func memberID(p *process) string { return fmt.Sprint("m", p.slot) }

// member returns the process's membership, which lasts from the first use to its end.
func (s *membersWorkload) member(p *process) *simMember {
	return processLocal(p, s.path(), func() *simMember {
		m := &simMember{group: members.New(p.client, s.path()), id: memberID(p), ready: make(chan struct{}),
			turn: make(chan struct{}, 1)}
		s.sim.tasks.Go(func() {
			defer close(m.ready)
			m.first = float64(s.sim.nextNumber())
			joined, err := m.group.Join(p.ctx, m.id, members.Info{Load: m.first}, members.WithDrain(s.drainFunction(p)))
			if err == nil {
				m.joined = joined
			} else if p.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) && !failure.IsTransient(err) {
				s.sim.addViolation(s.path(), "errors", "%s cannot join: %v", p.name, err)
			}
		})
		s.sim.tasks.Go(func() { s.watch(p, m.group) })
		return m
	})
}

// drainFunction finishes work that takes some seconds.
func (s *membersWorkload) drainFunction(p *process) func(context.Context, members.Cordon) error {
	return func(ctx context.Context, _ members.Cordon) error {
		timer := time.NewTimer(3 * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drained[memberID(p)] = time.Now()
		return nil
	}
}

// watch checks that no change is told behind a newer one, and that what an ID tells does not go
// back.
func (s *membersWorkload) watch(p *process, g *members.Group) {
	newest := int64(0)
	for view, err := range g.Follow(p.ctx) {
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) {
				s.sim.addViolation(s.path(), "errors", "%s cannot watch: %v", p.name, err)
			}
			return
		}
		s.sim.countOperation("view")
		for _, c := range view.Changes {
			if c.Zxid != 0 && c.Zxid < newest {
				s.sim.addViolation(s.path(), "order", "%s is told that %s %s in transaction %d behind %d", p.name,
					c.Member.ID, c.Kind, c.Zxid, newest)
			}
			newest = max(newest, c.Zxid)
			if c.Kind == members.Changed && c.Member.Node == c.Before.Node && c.Member.Info.Load < c.Before.Info.Load {
				s.sim.addViolation(s.path(), "freshness", "%s sees load %v of %s behind %v", p.name, c.Member.Info.Load,
					c.Member.ID, c.Before.Info.Load)
			}
		}
	}
}

func (s *membersWorkload) runActor(a *actor) {
	m := s.member(a.process)
	for a.nextStep() {
		select {
		case <-m.ready:
		case <-a.ctx.Done():
			return
		}
		if m.joined == nil {
			return
		}
		ctx, cancel := a.callContext()
		id := fmt.Sprint("m", a.rng.IntN(a.slot+2))
		a.sleep(a.ctx, durationBetween(a.rng, time.Second, 8*time.Second))
		switch a.rng.IntN(8) {
		case 0:
			s.uncordon(a, ctx, m, id)
		case 1:
			s.checkError(a, ctx, "cordon", m.group.Cordon(ctx, id))
		case 2, 3:
			s.drain(a, ctx, m, id)
		default:
			s.update(a, ctx, m)
		}
		cancel()
	}
}

// update checks that a list shows what an update has told, or what was told later. When the session
// has expired since, the list may show the node of a former process, whose session has not.
func (s *membersWorkload) update(a *actor, ctx context.Context, m *simMember) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-m.turn }()
	session, err := a.client.Session(ctx)
	if err != nil {
		s.checkError(a, ctx, "update", err)
		return
	}
	load := float64(s.sim.nextNumber())
	err = m.joined.Update(ctx, func(i *members.Info) { i.Load = load })
	if err != nil {
		s.checkError(a, ctx, "update", err)
		return
	}
	s.sim.countOperation("update")
	view, err := m.group.Inspect(ctx)
	if err != nil {
		s.checkError(a, ctx, "list", err)
		return
	}
	for _, one := range view.Members {
		isFormer := one.Info.Load < m.first && !a.hasSession(int64(session.ID()))
		if one.ID == m.id && one.Info.Load < load && !isFormer {
			s.sim.addViolation(s.path(), "freshness", "%s has told load %v, and the list has %v", a.name, load,
				one.Info.Load)
		}
	}
}

func (s *membersWorkload) uncordon(a *actor, ctx context.Context, m *simMember, id string) {
	began := time.Now()
	err := m.group.Uncordon(ctx, id)
	s.checkError(a, ctx, "uncordon", err)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if began.After(s.withdrawn[id]) {
			s.withdrawn[id] = began
		}
	}
}

// drain checks that a drain is acknowledged only after a drain function has ended, and not by what
// ended before the request was withdrawn.
func (s *membersWorkload) drain(a *actor, ctx context.Context, m *simMember, id string) {
	s.mu.Lock()
	since := s.withdrawn[id]
	s.mu.Unlock()
	err := m.group.Drain(ctx, id)
	s.sim.history.add(s.path(), "%s drains %s: %s", a.name, id, outcome(err))
	switch {
	case err == nil:
		s.sim.countOperation("drain")
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended := s.drained[id]; ended.IsZero() || ended.Before(since) {
			s.sim.addViolation(s.path(), "acknowledged",
				"%s has drained %s, whose drain function ended last at %v; the request of before was withdrawn at %v",
				a.name, id, ended, since)
		}
	case errors.Is(err, members.ErrWithdrawn), errors.Is(err, members.ErrLeft), errors.Is(err, framework.ErrNotFound):
	default:
		s.checkError(a, ctx, "drain", err)
	}
}

func (s *membersWorkload) checkError(a *actor, ctx context.Context, what string, err error) {
	if err == nil || errors.Is(err, framework.ErrNotFound) || errors.Is(err, members.ErrLeft) ||
		errors.Is(err, framework.ErrOutcomeUnknown) {
		return
	}
	if !a.isExpectedError(ctx, err) && a.ctx.Err() == nil && !failure.IsTransient(err) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// mayRemain allows for living members, and the watches of processes.
func (s *membersWorkload) mayRemain(node string) bool {
	return node == s.path() || strings.HasPrefix(node, s.path()+"/")
}

// checkAtEnd checks that all living processes are listed, with what they told last.
func (s *membersWorkload) checkAtEnd() {
	for _, p := range s.sim.liveProcesses() {
		m := s.member(p)
		select {
		case <-m.ready:
		default:
			s.sim.addViolation(s.path(), "listed", "%s has not joined at the end", p.name)
			continue
		}
		if m.joined == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
		view, err := m.group.Inspect(ctx)
		cancel()
		if err != nil {
			s.sim.addViolation(s.path(), "listed", "%s cannot list at the end: %v", p.name, err)
			continue
		}
		listed := false
		for _, one := range view.Members {
			listed = listed || one.ID == m.id && one.Info.Load == m.joined.Info().Load
		}
		if !listed {
			s.sim.addViolation(s.path(), "listed", "%s is not listed with load %v at the end", p.name,
				m.joined.Info().Load)
		}
	}
}
