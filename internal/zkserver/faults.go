package zkserver

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Request is what an observer sees of a request that has been done.
type Request struct {
	Session int64
	Op      wire.Op
	Path    string // what was asked about; empty where there is no path
	Result  string // the path that a create made, with its sequence number
	Data    []byte // what a create or a set was to write; its bytes are good until the function that is shown it returns
	Zxid    int64  // the server's after the request
	Err     wire.Code
	Parts   []Request // of a multi
}

// Match selects requests. All that is set must hold; the zero Match selects
// every request, pings included.
type Match struct {
	Op      wire.Op            // zero: any
	Path    string             // a prefix of the path, or of a part's
	Session int64              // zero: any
	Func    func(Request) bool // nil: any. It must not call the server.
}

func (m Match) matches(r Request) bool {
	return (m.Op == 0 || m.Op == r.Op) &&
		(m.Session == 0 || m.Session == r.Session) &&
		(m.Path == "" || m.touches(r)) &&
		(m.Func == nil || m.Func(r))
}

func (m Match) touches(r Request) bool {
	return strings.HasPrefix(r.Path, m.Path) ||
		slices.ContainsFunc(r.Parts, func(p Request) bool { return strings.HasPrefix(p.Path, m.Path) })
}

// Fault is a fault that has been asked for.
type Fault struct {
	s     *Server
	match Match
	after int           // matches to let pass
	delay time.Duration // zero: drop the reply, once
	left  int           // requests to throttle; zero: the fault is another
	once  sync.Once
	hit   chan struct{}
}

// Hit is closed once the fault has struck.
func (f *Fault) Hit() <-chan struct{} { return f.hit }

// Cancel ends the fault. It may be called more than once.
func (f *Fault) Cancel() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.forget(f)
}

// DropReply lets the n-th request that matches, counted from one, be done, and
// then cuts its connection instead of answering. Earlier answers still arrive.
func (s *Server) DropReply(n int, m Match) *Fault {
	return s.addFault(&Fault{match: m, after: max(n, 1) - 1})
}

// DelayReplies sends the answer to every request that matches so much later,
// until cancelled. What follows on the connection waits behind it.
func (s *Server) DelayReplies(d time.Duration, m Match) *Fault {
	return s.addFault(&Fault{match: m, delay: max(d, 1)})
}

// Throttle answers the next times requests that match with ThrottledOp and does not do them, as an overloaded server does. Pings and the close of a
// session are never throttled. A throttled request is not read: the match sees its operation and its session, and no path.
func (s *Server) Throttle(times int, m Match) *Fault {
	return s.addFault(&Fault{match: m, left: max(times, 1)})
}

// throttles reports whether a fault throttles a request that was not done yet.
func (s *Server) throttles(r *request) bool {
	if r.head.Op == wire.OpPing || r.head.Op == wire.OpCloseSession {
		return false
	}
	for _, f := range s.faults {
		if f.left == 0 || !f.match.matches(Request{Session: r.conn.session.id, Op: r.head.Op, Zxid: s.zxid}) {
			continue
		}
		f.once.Do(func() { close(f.hit) })
		if f.left--; f.left == 0 {
			s.forget(f)
		}
		return true
	}
	return false
}

func throttled(*Server, *request) wire.Code { return wire.ThrottledOp }

func (s *Server) addFault(f *Fault) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.s, f.hit = s, make(chan struct{})
	s.faults = append(s.faults, f)
	return f
}

func (s *Server) forget(f *Fault) {
	s.faults = slices.DeleteFunc(s.faults, func(other *Fault) bool { return other == f })
}

type observer struct{ see func(Request) }

// Observe calls f with every request that has been done, failed ones and pings
// included, in the order in which the server did them and before the answer
// leaves. f runs inside the server: it must be quick and must not call it.
// The function returned ends the observation.
func (s *Server) Observe(f func(Request)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &observer{f}
	s.observers = append(s.observers, o)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.observers = slices.DeleteFunc(s.observers, func(other *observer) bool { return other == o })
	}
}

// interfere tells the observers and asks the faults what becomes of the answer.
func (s *Server) interfere(r *request, code wire.Code) (delay time.Duration, drop bool) {
	if len(s.observers) == 0 && len(s.faults) == 0 {
		return 0, false
	}
	seen := Request{Session: r.conn.session.id, Op: r.head.Op, Path: r.path, Result: r.result, Data: r.data, Zxid: s.zxid, Err: code, Parts: r.parts}
	if code == noReply {
		seen.Err = wire.OK
	}
	for _, o := range s.observers {
		o.see(seen)
	}
	for _, f := range slices.Clone(s.faults) {
		switch {
		case f.left > 0 || !f.match.matches(seen):
		case f.after > 0:
			f.after--
		case f.delay > 0:
			delay = max(delay, f.delay)
			f.once.Do(func() { close(f.hit) })
		default:
			drop = true
			f.once.Do(func() { close(f.hit) })
			s.forget(f)
		}
	}
	return delay, drop
}

// noteParts keeps a multi's parts for those who look on.
func (r *request) noteParts(parts []wire.MultiPart, outcomes []outcome) {
	s := r.conn.s
	if len(s.observers) == 0 && len(s.faults) == 0 {
		return
	}
	for i, p := range parts {
		r.parts = append(r.parts, Request{Session: r.conn.session.id, Op: p.Op, Path: pathOf(p.Body),
			Data: dataOf(p.Body), Result: outcomes[i].path, Zxid: s.zxid, Err: outcomes[i].code})
	}
}
