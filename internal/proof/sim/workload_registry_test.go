package sim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func init() { newWorkload["registry"] = newRegistryWorkload }

// registryWorkload is a service whose instances come, change, go and die, while pools come and go,
// and their servers lag behind.
type registryWorkload struct {
	workloadBase

	mu         sync.Mutex
	registered map[string]*registryInstance // by id
}

// registryInstance is a registration that was not closed.
type registryInstance struct {
	process *process
	reg     *registry.Registration
}

// simService is the service's name.
const simService = "billing"

func newRegistryWorkload(sim *simulation, spec workloadSpec) workload {
	s := &registryWorkload{workloadBase: workloadBase{sim, spec}, registered: map[string]*registryInstance{}}
	sim.tasks.Go(s.checkAfterHeal)
	return s
}

// checkAfterHeal checks that a session timeout and two seconds after all faults were healed no
// instance of a dead process is registered, and that after two session timeouts each living
// instance is, and is in the list of each pool. It leaves that out if a fault happened meanwhile.
func (s *registryWorkload) checkAfterHeal() {
	<-s.sim.programEnd
	healed, timeout := time.Now(), s.sim.plan.sessionTimeout
	time.Sleep(time.Millisecond) // all faults of this moment are healed
	faults, processes := s.sim.faultsSoFar(), s.sim.liveProcesses()
	for _, p := range processes {
		s.sim.tasks.Go(func() { s.listedBy(p, timeout) }) // some have no pool yet
	}
	dead := map[string]int64{}
	for id, node := range s.nodes() {
		if p := s.sim.observer.processOf(node.Stat.EphemeralOwner); p == nil || p.ctx.Err() != nil {
			dead[id] = node.Stat.Czxid
		}
	}
	alive := s.living()
	time.Sleep(time.Until(healed.Add(timeout + 2*time.Second)))
	nodes := s.nodes()
	for id, czxid := range dead {
		if nodes[id].Stat.Czxid == czxid && s.sim.faultsSoFar() == faults {
			s.sim.addViolation(s.path(), "gone in time",
				"%s is registered %v after all faults were healed, and its process was dead", id, timeout+2*time.Second)
		}
	}
	time.Sleep(time.Until(healed.Add(2 * timeout)))
	nodes = s.nodes()
	still := s.living()
	for id := range alive {
		if _, registered := still[id]; !registered || s.sim.faultsSoFar() != faults {
			continue
		}
		s.sim.countOperation("listed in time")
		if _, there := nodes[id]; !there {
			s.sim.addViolation(s.path(), "listed in time",
				"%s lives, and is not registered %v after all faults were healed", id, 2*timeout)
		}
		for _, p := range processes {
			if !slices.Contains(s.listedBy(p, time.Millisecond), id) {
				s.sim.addViolation(s.path(), "listed in time",
					"%s lives, and %s does not list it %v after all faults were healed", id, p.name, 2*timeout)
			}
		}
	}
}

// listedBy is what the process's pool lists. Without a list it waits.
func (s *registryWorkload) listedBy(p *process, wait time.Duration) (ids []string) {
	ctx, cancel := context.WithTimeout(p.ctx, wait)
	defer cancel()
	all, _, _ := s.pool(p).Instances(ctx) // an error is an empty list
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return ids
}

// living are the instances of living processes that were registered and not closed.
func (s *registryWorkload) living() map[string]registry.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	alive := map[string]registry.Instance{}
	for id, i := range s.registered {
		if i.process.ctx.Err() == nil {
			alive[id] = i.reg.Instance()
		}
	}
	return alive
}

func (s *registryWorkload) dir() string { return s.path() + "/" + simService }

// pool returns the process's pool, which it has from the first use to its end.
func (s *registryWorkload) pool(p *process) *registry.Pool {
	return processLocal(p, s.path(), func() *registry.Pool {
		pool := registry.NewPool(p.client, s.path(), simService)
		context.AfterFunc(p.ctx, func() { s.sim.tasks.Go(func() { _ = pool.Close(context.Background()) }) })
		return pool
	})
}

func (s *registryWorkload) runActor(a *actor) {
	for a.nextStep() {
		ctx, cancel := a.callContext()
		switch a.rng.IntN(8) {
		case 0:
			s.register(a, ctx)
		case 1, 2:
			s.change(a, ctx)
		case 3:
			a.lagServer()
			s.startPool(a, ctx)
		case 4:
			s.startPool(a, ctx)
		default:
			s.pick(a, ctx)
		}
		cancel()
	}
}

// register registers an instance, which stays until change closes it or its process dies.
func (s *registryWorkload) register(a *actor, ctx context.Context) {
	id := fmt.Sprintf("i%d", s.sim.nextNumber())
	reg, err := registry.New(a.client, s.path()).Register(ctx,
		registry.Instance{Service: simService, ID: id, Address: "10.0.0.7", Port: 8080})
	if err != nil {
		s.checkError(a, ctx, "register", err)
		return
	}
	s.sim.countOperation("register")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered[id] = &registryInstance{a.process, reg}
}

// change updates, disables, enables or closes one of the process's instances.
func (s *registryWorkload) change(a *actor, ctx context.Context) {
	var one *registryInstance
	var id string
	s.mu.Lock()
	for name, i := range s.registered {
		if i.process == a.process && (one == nil || name < id) {
			one, id = i, name
		}
	}
	s.mu.Unlock()
	if one == nil {
		return
	}
	var err error
	switch a.rng.IntN(6) {
	case 0:
		weight := 1 + a.rng.IntN(1000) // here: the registration calls its change later, and perhaps twice
		err = one.reg.Update(ctx, func(i *registry.Instance) { i.Weight = weight })
	case 1:
		err = one.reg.Disable(ctx, "simulated")
	case 2:
		err = one.reg.Enable(ctx)
	default:
		s.mu.Lock()
		delete(s.registered, id)
		s.mu.Unlock()
		err = one.reg.Close(ctx)
	}
	if err != nil && !errors.Is(err, framework.ErrClosed) { // another actor may have closed it
		s.checkError(a, ctx, "change an instance", err)
		return
	}
	s.sim.countOperation("change")
}

// nodes are the instances that the servers have, by id.
func (s *registryWorkload) nodes() map[string]zktest.Node {
	all := map[string]zktest.Node{}
	for _, n := range s.sim.zk.Tree(s.dir()) {
		if n.Mode == zktest.Ephemeral {
			all[n.Path[len(s.dir())+1:]] = n
		}
	}
	return all
}

// startPool checks that the first list of a pool has each instance that was there before the pool
// and after the list.
func (s *registryWorkload) startPool(a *actor, ctx context.Context) {
	before := s.nodes()
	pool := registry.NewPool(a.client, s.path(), simService)
	all, _, err := pool.Instances(ctx)
	after := s.nodes()
	s.sim.tasks.Go(func() { _ = pool.Close(context.Background()) })
	a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, ctx, "list", err)
		return
	}
	s.sim.countOperation("list")
	listed := map[string]bool{}
	for _, i := range all {
		listed[i.ID] = true
	}
	for id, node := range before {
		if after[id].Stat.Czxid == node.Stat.Czxid && !listed[id] {
			s.sim.addViolation(s.path(), "freshness",
				"%s starts a pool, whose list lacks %s, which was there all the time", a.name, id)
		}
	}
}

// pick checks that the pool has an instance for the call whenever its list has one.
func (s *registryWorkload) pick(a *actor, ctx context.Context) {
	pool := s.pool(a.process)
	before, at, err := pool.Instances(ctx)
	if err != nil {
		s.checkError(a, ctx, "list", err)
		return
	}
	one, err := pool.Pick(ctx)
	_, later, _ := pool.Instances(ctx)
	switch {
	case err == nil:
		s.sim.countOperation("pick")
		one.Done(nil)
	case !errors.Is(err, registry.ErrNoInstance):
		s.checkError(a, ctx, "pick", err)
	case at.Equal(later):
		for _, i := range before {
			if i.Disabled == "" {
				s.sim.addViolation(s.path(), "empty", "%s finds no instance, and its list has %s", a.name, i.ID)
				return
			}
		}
	}
}

func (s *registryWorkload) checkError(a *actor, ctx context.Context, what string, err error) {
	if !a.isExpectedError(ctx, err) && a.ctx.Err() == nil && !failure.IsTransient(err) &&
		!errors.Is(err, framework.ErrOutcomeUnknown) && !errors.Is(err, registry.ErrIDInUse) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// mayBeDeleted lets an operator delete an instance's node: its process registers it again.
func (s *registryWorkload) mayBeDeleted(node string) bool { return len(node) > len(s.dir()) }

// mayRemain allows for what is registered, and for the pools' watch on the service.
func (s *registryWorkload) mayRemain(node string) bool {
	if node == s.dir() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.registered[node[min(len(node), len(s.dir())+1):]]
	return one != nil && one.process.ctx.Err() == nil
}

// checkAtEnd checks that the servers and each living process's pool list the living instances
// alone, as they were last.
func (s *registryWorkload) checkAtEnd() {
	alive := s.living()
	nodes := s.nodes()
	for id := range alive {
		if _, there := nodes[id]; !there {
			s.sim.addViolation(s.path(), "listed", "%s lives, and is not registered", id)
		}
	}
	for _, p := range s.sim.liveProcesses() {
		ctx, cancel := context.WithTimeout(p.ctx, s.sim.plan.sessionTimeout)
		all, _, err := s.pool(p).Instances(ctx)
		cancel()
		if err != nil {
			s.sim.addViolation(s.path(), "listed", "%s cannot list at the end: %v", p.name, err)
			continue
		}
		shown := map[string]registry.Instance{}
		for _, i := range all {
			shown[i.ID] = i
		}
		if !reflect.DeepEqual(shown, alive) {
			s.sim.addViolation(s.path(), "listed", "%s lists %v at the end, and %v live", p.name, shown, alive)
		}
	}
}
