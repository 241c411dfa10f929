package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/zktest"
)

func init() { newWorkload["config"] = newConfigWorkload }

// configWorkload is a configuration value that all processes follow, and that actors write, delete
// and read while their servers lag behind.
type configWorkload struct {
	workloadBase

	mu        sync.Mutex
	written   map[string]int  // transactions that wrote a text
	unwritten map[string]bool // texts whose Set reported that they were not written
	deletedAt int64           // zxid of the last deletion
}

func newConfigWorkload(sim *simulation, spec workloadSpec) workload {
	s := &configWorkload{workloadBase: workloadBase{sim, spec}, written: map[string]int{}, unwritten: map[string]bool{}}
	sim.zk.Observe(s.observe)
	return s
}

// observe counts the writes of each text.
func (s *configWorkload) observe(q zktest.Request) {
	if q.Err != 0 || slices.ContainsFunc(q.Parts, func(part zktest.Request) bool { return part.Err != 0 }) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.Op == zktest.OpMulti && len(q.Parts) > 1 && q.Parts[0].Path == s.path():
		s.written[string(q.Parts[0].Data)]++
	case q.Op == zktest.OpDelete && q.Path == s.path():
		s.deletedAt = q.Zxid
	}
}

// value returns the process's value, which it follows from the first use to its end.
func (s *configWorkload) value(p *process) *config.Value[string] {
	return processLocal(p, s.path(), func() *config.Value[string] {
		v := config.New(p.client, s.path(), codec.Text(), config.WithDefault(""))
		s.sim.tasks.Go(func() { s.followChanges(p, v) })
		return v
	})
}

// followChanges checks that no value is older than one before it.
func (s *configWorkload) followChanges(p *process, v *config.Value[string]) {
	newest := int64(0)
	for now, err := range v.Follow(p.ctx) {
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) {
				s.sim.addViolation(s.path(), "errors", "%s cannot follow: %v", p.name, err)
			}
			return
		}
		s.sim.countOperation("followed value")
		if now.Source == config.FromServers {
			if now.Version <= newest {
				s.sim.addViolation(s.path(), "order", "%s sees version %d after %d", p.name, now.Version, newest)
			}
			newest = now.Version
		}
	}
}

func (s *configWorkload) runActor(a *actor) {
	v := s.value(a.process)
	for a.nextStep() {
		ctx, cancel := a.callContext()
		switch a.rng.IntN(8) {
		case 0:
			_ = a.client.DeleteIfPresent(ctx, s.path()) // by another program; the outcome does not matter
		case 1, 2:
			a.lagServer()
			s.load(a, ctx, v)
		case 3, 4:
			s.load(a, ctx, v)
		default:
			s.set(a, ctx, v)
		}
		cancel()
	}
}

// load checks that Load returns nothing that was replaced before it began.
func (s *configWorkload) load(a *actor, ctx context.Context, v *config.Value[string]) {
	before, existed := s.sim.zk.Node(s.path())
	now, err := v.Load(ctx)
	a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, ctx, "load", err)
		return
	}
	s.sim.countOperation("load")
	s.sim.history.add(s.path(), "%s loads %q, version %d", a.name, now.Value, now.Version)
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := now.Source == config.FromDefault && s.deletedAt > before.Stat.Mzxid
	if existed && now.Version < before.Stat.Mzxid && !deleted {
		s.sim.addViolation(s.path(), "freshness", "%s loads version %d, and version %d was there before", a.name,
			now.Version, before.Stat.Mzxid)
	}
}

// set checks what Set reports of a text that it writes.
func (s *configWorkload) set(a *actor, ctx context.Context, v *config.Value[string]) {
	text := fmt.Sprint(s.sim.nextNumber())
	var opts []config.SetOption
	if oneIn(a.rng, 2) {
		opts = append(opts, config.WithExpectedVersion(v.Current().Version))
	}
	err := v.Set(ctx, text, opts...)
	a.waitWhileFrozen()
	s.sim.history.add(s.path(), "%s sets %s: %s", a.name, text, outcome(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch written := s.written[text]; {
	case written > 1:
		s.sim.addViolation(s.path(), "settled", "%s was written %d times", text, written)
	case err == nil:
		s.sim.countOperation("set")
		if written != 1 {
			s.sim.addViolation(s.path(), "settled", "Set of %s reports success, and it was not written", text)
		}
	case errors.Is(err, framework.ErrConflict):
		s.sim.countOperation("conflict")
		s.unwritten[text] = true
	case !errors.Is(err, framework.ErrOutcomeUnknown):
		s.unwritten[text] = true
		s.checkError(a, ctx, "set", err)
	}
}

// mayRemain allows for the watches of processes that still follow the value.
func (s *configWorkload) mayRemain(node string) bool { return node == s.path() }

func (s *configWorkload) checkError(a *actor, ctx context.Context, what string, err error) {
	if !a.isExpectedError(ctx, err) && a.ctx.Err() == nil && !failure.IsTransient(err) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// checkAtEnd checks that all living processes show the newest value, and that what was reported as
// not written was not.
func (s *configWorkload) checkAtEnd() {
	node, exists := s.sim.zk.Node(s.path())
	for _, p := range s.sim.liveProcesses() {
		now := s.value(p).Current()
		if exists && now.Version != node.Stat.Mzxid || !exists && now.Source != config.FromDefault {
			s.sim.addViolation(s.path(), "newest", "%s shows version %d (%q, %s) at the end, the servers have %d",
				p.name, now.Version, now.Value, now.Source, node.Stat.Mzxid)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for text := range s.unwritten {
		if s.written[text] > 0 {
			s.sim.addViolation(s.path(), "settled", "Set of %s reported that it was not written, and it was", text)
		}
	}
}
