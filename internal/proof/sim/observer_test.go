package sim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// requestObserver sees every request that the server has carried out.
type requestObserver struct {
	sim *simulation

	mu          sync.Mutex
	sessions    map[framework.SessionID]*process
	reapingSoon int // number of active faults that reap containers soon
	handlers    []func(zktest.Request)
}

func newRequestObserver(sim *simulation) *requestObserver {
	return &requestObserver{sim: sim, sessions: map[framework.SessionID]*process{}}
}

// addSession notes the process that owns a session.
func (o *requestObserver) addSession(session framework.SessionID, p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions[session] = p
}

// sessionCount is the number of sessions that processes have had.
func (o *requestObserver) sessionCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sessions)
}

func (o *requestObserver) processOf(session framework.SessionID) *process {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sessions[session]
}

// addHandler calls f with every request, from before the actors start. f must not call the server.
func (o *requestObserver) addHandler(f func(zktest.Request)) { o.handlers = append(o.handlers, f) }

func (o *requestObserver) observe(r zktest.Request) {
	if r.Op == zktest.OpPing {
		if p := o.processOf(r.Session); p != nil {
			p.pingDone()
		}
		return
	}
	for _, look := range o.handlers {
		look(r)
	}
	p := o.processOf(r.Session)
	o.logRequest(r, p)
	if p != nil {
		p.requestDone()
	}
	if o.isReapingSoon() && mayEmptyContainer(r) {
		go o.sim.zk.Reap()
	}
}

func (o *requestObserver) changeReapingSoon(by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reapingSoon += by
}

func (o *requestObserver) isReapingSoon() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reapingSoon > 0
}

// mayEmptyContainer reports whether a request may have emptied a container.
func mayEmptyContainer(r zktest.Request) bool {
	for _, part := range r.Parts {
		if part.Op == zktest.OpDelete {
			return true
		}
	}
	return r.Op == zktest.OpDelete || r.Op == zktest.OpCloseSession
}

// logRequest writes changes into the history.
func (o *requestObserver) logRequest(r zktest.Request, p *process) {
	name := fmt.Sprintf("session %x", r.Session&0xffff)
	if p != nil {
		name = p.name
	}
	what := describeRequest(r)
	if what == "" {
		return
	}
	o.sim.history.add(o.sim.workloadPathOf(r), "  server: %s of %s, zxid %d", what, name, r.Zxid)
}

// describeRequest names a change. It returns "" for requests that change nothing.
func describeRequest(r zktest.Request) string {
	var what string
	switch r.Op {
	case zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer:
		what = "create " + r.Path
		if r.Result != "" {
			what = "create " + r.Result
		}
	case zktest.OpDelete, zktest.OpSetData, zktest.OpCloseSession:
		what = strings.TrimSpace(fmt.Sprint(r.Op, " ", r.Path))
	case zktest.OpMulti:
		what = describeParts(r)
	}
	if what != "" && r.Err != 0 {
		what += fmt.Sprintf(" (%v)", r.Err)
	}
	return what
}

// describeParts describes a transaction. It returns "" for a heartbeat, which only checks.
func describeParts(r zktest.Request) string {
	var parts []string
	changes := false
	for _, part := range r.Parts {
		if d := describeRequest(part); d != "" {
			parts, changes = append(parts, d), true
			continue
		}
		parts = append(parts, fmt.Sprint(part.Op, " ", part.Path))
	}
	if !changes {
		return ""
	}
	return strings.Join(parts, " + ")
}

// workloadPathOf is the path of the workload that a request belongs to, or "".
func (sim *simulation) workloadPathOf(r zktest.Request) string {
	for _, s := range sim.plan.workloads {
		if belongsTo(r.Path, s.path) {
			return s.path
		}
		for _, part := range r.Parts {
			if belongsTo(part.Path, s.path) {
				return s.path
			}
		}
	}
	return ""
}

// belongsTo reports whether a node is in a workload's directory or beside it.
func belongsTo(path, scene string) bool {
	return strings.HasPrefix(path, scene)
}
