package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// simulation runs one plan. All of it lives in one bubble.
type simulation struct {
	plan     plan
	zk       *zktest.Server
	history  *history
	observer *requestObserver

	operator   *framework.Client // who deletes nodes from outside
	actors     sync.WaitGroup
	tasks      sync.WaitGroup // what ends after the actors
	programEnd chan struct{}  // closed when the program is over: actors finish what they do

	mu              sync.Mutex
	processes       []*process // those that live, by place
	restarts        []int      // how many were at each place before
	workloads       []workload
	violations      []violation
	endedByOperator operatorEnds
	hitByOperator   map[*process]bool // of which an operator has ended a session
	faultCounts     map[faultKind]int
	operationCounts map[string]int
	lastNumber      int
	clockAhead      time.Duration // the ensemble's clock, of the true time
	maxClockAhead   time.Duration // at any time so far
}

// operatorEnds is what operators have ended. Lockstep promises nothing of it but tokens.
type operatorEnds struct {
	sessions map[int64]bool
	lines    map[sessionInDir]bool
}

// sessionInDir is a session's nodes in one directory: those of one session rely on each other's numbers.
type sessionInDir struct {
	session int64
	dir     string
}

func newSimulation(p plan) *simulation {
	options := []zktest.Option{zktest.WithContainerInterval(p.reapInterval)}
	if p.exactExpiry {
		options = append(options, zktest.WithExactExpiry())
	}
	zk, err := zktest.New(options...)
	if err != nil {
		panic(err)
	}
	sim := &simulation{plan: p, zk: zk, history: &history{began: time.Now()}, programEnd: make(chan struct{}), faultCounts: map[faultKind]int{}, operationCounts: map[string]int{}, hitByOperator: map[*process]bool{},
		endedByOperator: operatorEnds{map[int64]bool{}, map[sessionInDir]bool{}}}
	sim.observer = newRequestObserver(sim)
	sim.operator, err = framework.New(framework.Config{Servers: zk.Servers(), Identity: "operator"},
		framework.WithDialer(zk.Link("operator").DialContext), framework.WithClock(framework.TimeClock()), framework.WithLogger(discardLogger))
	if err != nil {
		panic(err)
	}
	return sim
}

// run runs the plan, and checks what must hold at the end.
func (sim *simulation) run() {
	sim.operator.Start()
	for _, spec := range sim.plan.workloads {
		sim.workloads = append(sim.workloads, makeWorkload(sim, spec))
	}
	defer sim.zk.Observe(sim.observer.observe)()
	for place := range sim.plan.processes {
		sim.restarts = append(sim.restarts, 0)
		sim.processes = append(sim.processes, sim.startProcess(place, 0))
		sim.startActors(sim.processes[place])
	}
	go sim.injectFaults()
	time.Sleep(sim.plan.duration)
	sim.history.add("", "the program is over")
	close(sim.programEnd)
	sim.healFaults()
	if sim.awaitActors() {
		sim.checkAtEnd()
	}
	sim.close()
}

// startActors lets a process's actors play the scenes.
func (sim *simulation) startActors(p *process) {
	for i, spec := range sim.plan.workloads {
		for n := range spec.actors {
			a := newActor(p, spec, n)
			sim.actors.Go(func() { sim.workloads[i].runActor(a) })
		}
	}
}

// programEnded tells whether actors are to finish.
func (sim *simulation) programEnded() bool {
	select {
	case <-sim.programEnd:
		return true
	default:
		return false
	}
}

// healFaults ends all faults.
func (sim *simulation) healFaults() {
	if sim.ensembleClockAhead() != 0 {
		sim.setEnsembleClock(0, false)
	}
	sim.zk.Thaw()
	for _, p := range sim.liveProcesses() {
		p.endAllFaults()
	}
}

func (sim *simulation) liveProcesses() []*process {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return append([]*process(nil), sim.processes...)
}

// waitLimit is how long actors may take to finish once all is well again.
func (sim *simulation) waitLimit() time.Duration { return 10*sim.plan.sessionTimeout + 5*time.Minute }

// awaitActors waits for the actors.
func (sim *simulation) awaitActors() bool {
	if waitFor(sim.waitLimit(), &sim.actors) {
		return true
	}
	sim.addViolation("", "progress", "somebody still waits %v after everything was healed", sim.waitLimit())
	for _, p := range sim.liveProcesses() {
		p.cancel()
	}
	if !waitFor(sim.waitLimit(), &sim.actors) {
		sim.addViolation("", "contexts end waits", "somebody still waits %v after its context has ended", sim.waitLimit())
		panic(fmt.Sprint(sim.plan, sim.violations, "\n", formatEvents(sim.history.before(sim.violations[0], 200))))
	}
	return false
}

// checkAtEnd waits until dead sessions are gone too, and checks what must hold then.
func (sim *simulation) checkAtEnd() {
	time.Sleep(2*sim.plan.sessionTimeout + 10*time.Second)
	for _, s := range sim.workloads {
		s.checkAtEnd()
		sim.checkLeftovers(s)
	}
}

// checkLeftovers checks that nobody has left a node or a watch behind.
func (sim *simulation) checkLeftovers(s workload) {
	path := s.path()
	for _, n := range sim.zk.Tree(path) {
		if n.Kind == zktest.Ephemeral && !s.mayRemain(n.Path) {
			sim.addViolation(path, "no orphan", "%s was left behind", n.Path)
		}
	}
	for _, watch := range sim.zk.Watches() {
		if _, there := sim.zk.Node(watch.Path); !there && belongsTo(watch.Path, path) && !s.mayRemain(watch.Path) {
			sim.addViolation(path, "no leaked watch", "a watch on %s, which does not exist, was left behind", watch.Path)
		}
	}
}

// close ends the processes, which must leave nothing that runs.
func (sim *simulation) close() {
	for _, p := range sim.liveProcesses() {
		p.close()
	}
	sim.tasks.Go(func() { _ = sim.operator.Close(context.Background()) })
	if !waitFor(sim.waitLimit(), &sim.tasks) {
		panic(fmt.Sprint("a client could not be closed\n", sim.plan, formatEvents(sim.history.all())))
	}
	sim.zk.Close()
}

// discardLogger is where clients report to.
var discardLogger = slog.New(slog.DiscardHandler)

// waitFor waits for a group, for no longer than d.
func waitFor(d time.Duration, g *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// endedSessionCount is how many sessions the servers have ended, or their processes.
func (sim *simulation) endedSessionCount() int {
	living := 0
	for _, s := range sim.zk.Sessions() {
		if sim.observer.processOf(s.ID) != nil {
			living++
		}
	}
	return sim.observer.sessionCount() - living
}

// addViolation notes a broken promise.
func (sim *simulation) addViolation(scene, rule, format string, args ...any) {
	v := violation{time.Since(sim.history.began), scene, rule, fmt.Sprintf(format, args...)}
	sim.history.add(scene, "BROKEN: %s: %s", rule, v.text)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.violations = append(sim.violations, v)
}

// countOperation counts what was done.
func (sim *simulation) countOperation(what string) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.operationCounts[what]++
}

// nextNumber is another number each time.
func (sim *simulation) nextNumber() int {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.lastNumber++
	return sim.lastNumber
}

// countFault counts a fault.
func (sim *simulation) countFault(k faultKind) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.faultCounts[k]++
}

// noteExpiredSession and noteDeletedNode note what an operator is about to end.
func (sim *simulation) noteExpiredSession(id int64, p *process) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.hitByOperator[p] = true
	sim.endedByOperator.sessions[id] = true
}

func (sim *simulation) noteDeletedNode(n zktest.Node) {
	dir, _ := framework.Split(n.Path)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.endedByOperator.lines[sessionInDir{n.Stat.EphemeralOwner, dir}] = true
}

// isHitByOperator tells whether an operator has ended a session of a process.
func (sim *simulation) isHitByOperator(p *process) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.hitByOperator[p]
}

// isEndedByOperator tells whether an operator has ended what a grant stands on.
func (sim *simulation) isEndedByOperator(session int64, node string) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	dir, _ := framework.Split(node)
	return sim.endedByOperator.sessions[session] || sim.endedByOperator.lines[sessionInDir{session, dir}]
}
