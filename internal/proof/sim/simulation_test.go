package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

// simulation runs one plan in a synctest bubble.
type simulation struct {
	plan     plan
	zk       *zktest.Server
	history  *history
	observer *requestObserver

	operator   *framework.Client // deletes nodes as an operator does
	actors     sync.WaitGroup
	tasks      sync.WaitGroup // tasks that end after the actors
	programEnd chan struct{}  // closed at the end of the program: actors finish their current step

	mu              sync.Mutex
	processes       []*process // the living processes, by slot
	restarts        []int      // number of crashed processes, by slot
	workloads       []workload
	violations      []violation
	endedByOperator operatorEnds
	hitByOperator   map[*process]bool // processes that lost a session to an operator
	faultCounts     map[faultKind]int
	operationCounts map[string]int
	lastNumber      int
	clockAhead      time.Duration // how far the ensemble's clock is ahead of the true time
	maxClockAhead   time.Duration // maximum of clockAhead so far
	heldFollowers   []func()      // release the followers that were cut off
}

// operatorEnds are sessions and nodes that an operator has ended. Lockstep guarantees no exclusion
// for them, only tokens.
type operatorEnds struct {
	sessions map[framework.SessionID]bool
	lines    map[sessionInDir]bool
}

// sessionInDir is a session's nodes in one directory: contenders of one session rely on each
// other's numbers.
type sessionInDir struct {
	session framework.SessionID
	dir     string
}

func newSimulation(p plan) *simulation {
	options := []zktest.Option{zktest.WithContainerInterval(p.reapInterval)}
	if p.exactExpiry {
		options = append(options, zktest.WithExactExpiry())
	}
	if p.followers {
		options = append(options, zktest.WithFollowers())
	}
	zk, err := zktest.New(options...)
	if err != nil {
		panic(err)
	}
	sim := &simulation{plan: p, zk: zk, history: &history{began: time.Now()}, programEnd: make(chan struct{}),
		faultCounts: map[faultKind]int{}, operationCounts: map[string]int{}, hitByOperator: map[*process]bool{},
		endedByOperator: operatorEnds{map[framework.SessionID]bool{}, map[sessionInDir]bool{}}}
	sim.observer = newRequestObserver(sim)
	sim.operator, err = framework.New(framework.Config{Servers: zk.Servers(), Identity: "operator"},
		framework.WithDialer(zk.Link("operator").DialContext), framework.WithTimeClock(),
		framework.WithLogger(discardLogger))
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

// startActors starts a process's actors.
func (sim *simulation) startActors(p *process) {
	for i, spec := range sim.plan.workloads {
		for n := range spec.actors {
			a := newActor(p, spec, n)
			sim.actors.Go(func() { sim.workloads[i].runActor(a) })
		}
	}
}

// programEnded reports whether actors must finish.
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
	sim.releaseFollowers()
	for _, p := range sim.liveProcesses() {
		p.endAllFaults()
	}
}

func (sim *simulation) liveProcesses() []*process {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return append([]*process(nil), sim.processes...)
}

// waitLimit is how long actors may take to finish after all faults were healed.
func (sim *simulation) waitLimit() time.Duration { return 10*sim.plan.sessionTimeout + 5*time.Minute }

// awaitActors waits for the actors. It returns false if some did not finish.
func (sim *simulation) awaitActors() bool {
	if waitFor(sim.waitLimit(), &sim.actors) {
		return true
	}
	sim.addViolation("", "progress", "a call still waits %v after all faults were healed", sim.waitLimit())
	for _, p := range sim.liveProcesses() {
		p.cancel()
	}
	if !waitFor(sim.waitLimit(), &sim.actors) {
		sim.addViolation("", "contexts end waits", "a call still waits %v after its context has ended", sim.waitLimit())
		panic(fmt.Sprint(sim.plan, sim.violations, "\n", formatEvents(sim.history.before(sim.violations[0], 200))))
	}
	return false
}

// checkAtEnd waits until the sessions of crashed processes have expired, and runs the checks of
// that state.
func (sim *simulation) checkAtEnd() {
	time.Sleep(2*sim.plan.sessionTimeout + 10*time.Second)
	for _, s := range sim.workloads {
		s.checkAtEnd()
		sim.checkLeftovers(s)
	}
}

// checkLeftovers checks that no ephemeral node and no watch was left behind.
func (sim *simulation) checkLeftovers(s workload) {
	path := s.path()
	for _, n := range sim.zk.Tree(path) {
		if n.Mode == zktest.Ephemeral && !s.mayRemain(n.Path) {
			sim.addViolation(path, "no orphan", "%s was left behind", n.Path)
		}
	}
	for _, watch := range sim.zk.Watches() {
		if _, there := sim.zk.Node(watch.Path); !there && belongsTo(watch.Path, path) && !s.mayRemain(watch.Path) {
			sim.addViolation(path, "no leaked watch", "a watch on %s, which does not exist, was left behind",
				watch.Path)
		}
	}
}

// close ends the processes. No goroutine of them may be left.
func (sim *simulation) close() {
	for _, p := range sim.liveProcesses() {
		p.close()
	}
	sim.tasks.Go(func() { _ = sim.operator.Close(context.Background()) })
	if !waitFor(sim.waitLimit(), &sim.tasks) {
		panic(fmt.Sprint("a client did not close\n", sim.plan, formatEvents(sim.history.all())))
	}
	sim.zk.Close()
}

// discardLogger is the clients' logger.
var discardLogger = slog.New(slog.DiscardHandler)

// waitFor waits for a group for at most d.
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

// endedSessionCount is the number of sessions that were closed or have expired.
func (sim *simulation) endedSessionCount() int {
	living := 0
	for _, s := range sim.zk.Sessions() {
		if sim.observer.processOf(s.ID) != nil {
			living++
		}
	}
	return sim.observer.sessionCount() - living
}

// addViolation adds a violation.
func (sim *simulation) addViolation(scene, rule, format string, args ...any) {
	v := violation{time.Since(sim.history.began), scene, rule, fmt.Sprintf(format, args...)}
	sim.history.add(scene, "BROKEN: %s: %s", rule, v.text)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.violations = append(sim.violations, v)
}

// countOperation counts an operation.
func (sim *simulation) countOperation(what string) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.operationCounts[what]++
}

// nextNumber returns a new number each time.
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

// faultsSoFar counts faults but the ends of contexts, which disturb nobody else.
func (sim *simulation) faultsSoFar() (n int) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for kind, times := range sim.faultCounts {
		if kind != contextEnd {
			n += times
		}
	}
	return n
}

// noteExpiredSession and noteDeletedNode must be called before an operator ends a session or
// deletes a node.
func (sim *simulation) noteExpiredSession(id framework.SessionID, p *process) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.hitByOperator[p] = true
	sim.endedByOperator.sessions[id] = true
}

func (sim *simulation) noteDeletedNode(n zktest.Node) {
	dir, _ := znode.Split(n.Path)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.endedByOperator.lines[sessionInDir{n.Stat.EphemeralOwner, dir}] = true
}

// isHitByOperator reports whether an operator has ended a session of a process.
func (sim *simulation) isHitByOperator(p *process) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.hitByOperator[p]
}

// isEndedByOperator reports whether an operator has ended the session or the line that a grant
// depends on.
func (sim *simulation) isEndedByOperator(session framework.SessionID, node string) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	dir, _ := znode.Split(node)
	return sim.endedByOperator.sessions[session] || sim.endedByOperator.lines[sessionInDir{session, dir}]
}
