package sim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/zktest"
)

// eye sees every request that the server has done.
type eye struct {
	w *world

	mu       sync.Mutex
	sessions map[int64]*process
	reaping  int // faults that have containers reaped soon
	lookers  []func(zktest.Request)
}

func newEye(w *world) *eye { return &eye{w: w, sessions: map[int64]*process{}} }

// know tells whose a session is.
func (e *eye) know(session int64, p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sessions[session] = p
}

// known is how many sessions processes have had.
func (e *eye) known() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions)
}

func (e *eye) whose(session int64) *process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[session]
}

// watch has f called with all requests that were done, before any scene is played. It must not call the
// server.
func (e *eye) watch(f func(zktest.Request)) { e.lookers = append(e.lookers, f) }

func (e *eye) see(r zktest.Request) {
	if r.Op == zktest.OpPing {
		return
	}
	for _, look := range e.lookers {
		look(r)
	}
	p := e.whose(r.Session)
	e.note(r, p)
	if p != nil {
		p.done()
	}
	if e.reapsSoon() && deletes(r) {
		go e.w.zk.Reap()
	}
}

func (e *eye) reapSoon(by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reaping += by
}

func (e *eye) reapsSoon() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reaping > 0
}

// deletes tells whether a request may have emptied a container.
func deletes(r zktest.Request) bool {
	for _, part := range r.Parts {
		if part.Op == zktest.OpDelete {
			return true
		}
	}
	return r.Op == zktest.OpDelete || r.Op == zktest.OpCloseSession
}

// note writes changes into the history.
func (e *eye) note(r zktest.Request, p *process) {
	name := fmt.Sprintf("session %x", r.Session&0xffff)
	if p != nil {
		name = p.name
	}
	what := describe(r)
	if what == "" {
		return
	}
	e.w.h.note(e.w.sceneOf(r), "  server: %s of %s, zxid %d", what, name, r.Zxid)
}

// describe names a change, or is "" for what changes nothing.
func describe(r zktest.Request) string {
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

// describeParts is "" for a proof of life, which only checks.
func describeParts(r zktest.Request) string {
	var parts []string
	changes := false
	for _, part := range r.Parts {
		if d := describe(part); d != "" {
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

// sceneOf is the path of the scene that a request belongs to, or "".
func (w *world) sceneOf(r zktest.Request) string {
	for _, s := range w.plan.scenes {
		if below(r.Path, s.path) {
			return s.path
		}
		for _, part := range r.Parts {
			if below(part.Path, s.path) {
				return s.path
			}
		}
	}
	return ""
}

// below tells whether a node belongs to a scene, in its directory or beside it.
func below(path, scene string) bool {
	return strings.HasPrefix(path, scene)
}
