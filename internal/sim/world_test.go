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

// world runs one plan. All of it lives in one bubble.
type world struct {
	plan plan
	zk   *zktest.Server
	h    *history
	eye  *eye

	operator *framework.Client // who deletes nodes from outside
	actors   sync.WaitGroup
	tasks    sync.WaitGroup // what ends after the actors
	over     chan struct{}  // closed when the program is over: actors finish what they do

	mu         sync.Mutex
	processes  []*process // those that live, by place
	lives      []int      // how many were at each place before
	scenes     []scene
	violations []violation
	doomed     doomed
	expelled   map[*process]bool // of which an operator has ended a session
	struck     map[kind]int
	did        map[string]int
	numbers    int
	ahead      time.Duration // the ensemble's clock, of the true time
	mostAhead  time.Duration // at any time so far
}

// doomed is what operators have ended. Lockstep promises nothing of it but tokens.
type doomed struct {
	sessions map[int64]bool
	lines    map[inLine]bool
}

// inLine is a session's nodes in one directory: those of one session rely on each other's numbers.
type inLine struct {
	session int64
	dir     string
}

func newWorld(p plan) *world {
	options := []zktest.Option{zktest.WithContainerInterval(p.reaping)}
	if p.exact {
		options = append(options, zktest.WithExactExpiry())
	}
	zk, err := zktest.New(options...)
	if err != nil {
		panic(err)
	}
	w := &world{plan: p, zk: zk, h: &history{began: time.Now()}, over: make(chan struct{}), struck: map[kind]int{}, did: map[string]int{}, expelled: map[*process]bool{},
		doomed: doomed{map[int64]bool{}, map[inLine]bool{}}}
	w.eye = newEye(w)
	w.operator, err = framework.New(framework.Config{Servers: zk.Servers(), Identity: "operator"},
		framework.WithDialer(zk.Link("operator").DialContext), framework.WithClock(framework.TimeClock()), framework.WithLogger(silent))
	if err != nil {
		panic(err)
	}
	return w
}

// run runs the plan, and checks what must hold at the end.
func (w *world) run() {
	w.operator.Start()
	for _, spec := range w.plan.scenes {
		w.scenes = append(w.scenes, makeScene(w, spec))
	}
	defer w.zk.Observe(w.eye.see)()
	for place := range w.plan.processes {
		w.lives = append(w.lives, 0)
		w.processes = append(w.processes, w.start(place, 0))
		w.play(w.processes[place])
	}
	go w.misfortune()
	time.Sleep(w.plan.length)
	w.h.note("", "the program is over")
	close(w.over)
	w.heal()
	if w.finish() {
		w.settle()
	}
	w.close()
}

// play lets a process's actors play the scenes.
func (w *world) play(p *process) {
	for i, spec := range w.plan.scenes {
		for n := range spec.actors {
			a := newActor(p, spec, n)
			w.actors.Go(func() { w.scenes[i].play(a) })
		}
	}
}

// isOver tells whether actors are to finish.
func (w *world) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// heal ends all faults.
func (w *world) heal() {
	if w.ensembleAhead() != 0 {
		w.setClock(0, false)
	}
	w.zk.Thaw()
	for _, p := range w.living() {
		p.mend()
	}
}

func (w *world) living() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*process(nil), w.processes...)
}

// patience is how long actors may take to finish once all is well again.
func (w *world) patience() time.Duration { return 10*w.plan.timeout + 5*time.Minute }

// finish waits for the actors.
func (w *world) finish() bool {
	if within(w.patience(), &w.actors) {
		return true
	}
	w.violate("", "progress", "somebody still waits %v after everything was healed", w.patience())
	for _, p := range w.living() {
		p.cancel()
	}
	if !within(w.patience(), &w.actors) {
		w.violate("", "contexts end waits", "somebody still waits %v after its context has ended", w.patience())
		panic(fmt.Sprint(w.plan, w.violations, "\n", text(w.h.before(w.violations[0], 200))))
	}
	return false
}

// settle waits until dead sessions are gone too, and checks what must hold then.
func (w *world) settle() {
	time.Sleep(2*w.plan.timeout + 10*time.Second)
	for _, s := range w.scenes {
		s.settled()
		w.nothingLeft(s)
	}
}

// nothingLeft checks that nobody has left a node or a watch behind.
func (w *world) nothingLeft(s scene) {
	path := s.path()
	for _, n := range w.zk.Tree(path) {
		if n.Kind == zktest.Ephemeral && !s.stays(n.Path) {
			w.violate(path, "no orphan", "%s was left behind", n.Path)
		}
	}
	for _, watch := range w.zk.Watches() {
		if _, there := w.zk.Node(watch.Path); !there && below(watch.Path, path) && !s.stays(watch.Path) {
			w.violate(path, "no leaked watch", "a watch on %s, which does not exist, was left behind", watch.Path)
		}
	}
}

// close ends the processes, which must leave nothing that runs.
func (w *world) close() {
	for _, p := range w.living() {
		p.end()
	}
	w.tasks.Go(func() { _ = w.operator.Close(context.Background()) })
	if !within(w.patience(), &w.tasks) {
		panic(fmt.Sprint("a client could not be closed\n", w.plan, text(w.h.all())))
	}
	w.zk.Close()
}

// silent is where clients report to.
var silent = slog.New(slog.DiscardHandler)

// within waits for a group, for no longer than d.
func within(d time.Duration, g *sync.WaitGroup) bool {
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

// endedSessions is how many sessions the servers have ended, or their processes.
func (w *world) endedSessions() int {
	living := 0
	for _, s := range w.zk.Sessions() {
		if w.eye.whose(s.ID) != nil {
			living++
		}
	}
	return w.eye.known() - living
}

// violate notes a broken promise.
func (w *world) violate(scene, rule, format string, args ...any) {
	v := violation{time.Since(w.h.began), scene, rule, fmt.Sprintf(format, args...)}
	w.h.note(scene, "BROKEN: %s: %s", rule, v.text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, v)
}

// count counts what was done.
func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[what]++
}

// next is another number each time.
func (w *world) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.numbers++
	return w.numbers
}

// hit counts a fault.
func (w *world) hit(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.struck[k]++
}

// doomSession and doomNode note what an operator is about to end.
func (w *world) doomSession(id int64, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expelled[p] = true
	w.doomed.sessions[id] = true
}

func (w *world) doomNode(n zktest.Node) {
	dir, _ := framework.Split(n.Path)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doomed.lines[inLine{n.Stat.EphemeralOwner, dir}] = true
}

// isDoomedProcess tells whether an operator has ended a session of a process.
func (w *world) isDoomedProcess(p *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expelled[p]
}

// isDoomed tells whether an operator has ended what a grant stands on.
func (w *world) isDoomed(session int64, node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir, _ := framework.Split(node)
	return w.doomed.sessions[session] || w.doomed.lines[inLine{session, dir}]
}
