package zkserver

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Request is a request that the server has processed, as observers and matches see it.
type Request struct {
	Session int64
	Op      wire.Op
	Path    string // the path in the request; empty for operations without a path
	Result  string // the path of a created node, with its sequence number
	Data    []byte // the data of a create or a set; valid until the function that gets the request returns
	Zxid    int64  // the server's last zxid after the request
	Err     wire.Code
	Parts   []Request // the parts of a multi
}

// Writes reports whether the request, or a part of it, creates, deletes or changes a node unless
// the server refuses it. A transaction of checks writes nothing.
func (r Request) Writes() bool {
	switch r.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpDeleteContainer,
		wire.OpSetData, wire.OpSetACL:
		return true
	}
	return slices.ContainsFunc(r.Parts, Request.Writes)
}

// Match selects requests. All fields that are set must match; the zero Match selects every request,
// pings included.
type Match struct {
	Op      wire.Op            // zero: any
	Path    string             // a prefix of the path, or of the path of a part
	Session int64              // zero: any
	Func    func(Request) bool // nil: any. It must not call the server.
}

func (m Match) matches(r Request) bool {
	return (m.Op == 0 || m.Op == r.Op) &&
		(m.Session == 0 || m.Session == r.Session) &&
		(m.Path == "" || m.matchesPath(r)) &&
		(m.Func == nil || m.Func(r))
}

func (m Match) matchesPath(r Request) bool {
	return strings.HasPrefix(r.Path, m.Path) ||
		slices.ContainsFunc(r.Parts, func(p Request) bool { return strings.HasPrefix(p.Path, m.Path) })
}

// Fault is an injected fault. It has one effect: it drops one reply, delays replies, or throttles
// requests.
type Fault struct {
	injector     *faultInjector
	match        Match
	skip         int           // how many matching requests get their replies before one is dropped
	delay        time.Duration // how long replies are delayed; 0 for other faults
	throttleLeft int           // how many more requests to throttle; 0 for other faults
	hitOnce      sync.Once
	hit          chan struct{}
}

// Hit returns a channel that is closed once the fault has had its effect.
func (f *Fault) Hit() <-chan struct{} { return f.hit }

// Cancel ends the fault. Later calls do nothing.
func (f *Fault) Cancel() {
	f.injector.lock.Lock()
	defer f.injector.lock.Unlock()
	f.injector.removeFault(f)
}

func (f *Fault) signalHit() { f.hitOnce.Do(func() { close(f.hit) }) }

type observer struct{ see func(Request) }

// faultInjector has the faults and the observers of requests. The server's mutex guards it.
// addFault, addObserver and Fault.Cancel lock the mutex; the callers of other methods hold it.
type faultInjector struct {
	lock      sync.Locker
	faults    []*Fault
	observers []*observer
}

func (i *faultInjector) addFault(f *Fault) *Fault {
	i.lock.Lock()
	defer i.lock.Unlock()
	f.injector, f.hit = i, make(chan struct{})
	i.faults = append(i.faults, f)
	return f
}

func (i *faultInjector) removeFault(f *Fault) {
	i.faults = slices.DeleteFunc(i.faults, func(other *Fault) bool { return other == f })
}

func (i *faultInjector) addObserver(see func(Request)) (stop func()) {
	i.lock.Lock()
	defer i.lock.Unlock()
	o := &observer{see}
	i.observers = append(i.observers, o)
	return func() {
		i.lock.Lock()
		defer i.lock.Unlock()
		i.observers = slices.DeleteFunc(i.observers, func(other *observer) bool { return other == o })
	}
}

// isIdle reports whether there is neither a fault nor an observer, so that requests need not be
// described.
func (i *faultInjector) isIdle() bool { return len(i.observers) == 0 && len(i.faults) == 0 }

// throttlesRequest reports whether a fault throttles a request that was not processed yet. It
// counts the request for that fault.
func (i *faultInjector) throttlesRequest(r Request) bool {
	if r.Op == wire.OpPing || r.Op == wire.OpCloseSession {
		return false
	}
	for _, f := range i.faults {
		if f.throttleLeft == 0 || !f.match.matches(r) {
			continue
		}
		f.signalHit()
		if f.throttleLeft--; f.throttleLeft == 0 {
			i.removeFault(f)
		}
		return true
	}
	return false
}

// applyToReply calls the observers with a request. It returns how long the faults delay the reply,
// and whether they drop it.
func (i *faultInjector) applyToReply(r Request) (delay time.Duration, drop bool) {
	for _, o := range i.observers {
		o.see(r)
	}
	for _, f := range slices.Clone(i.faults) {
		switch {
		case f.throttleLeft > 0 || !f.match.matches(r):
		case f.skip > 0:
			f.skip--
		case f.delay > 0:
			delay = max(delay, f.delay)
			f.signalHit()
		default:
			drop = true
			f.signalHit()
			i.removeFault(f)
		}
	}
	return delay, drop
}
