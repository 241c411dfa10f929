package link

import (
	"sync"
	"sync/atomic"
)

type traceKey struct {
	op   int32
	path string
}

// Trace follows one request through the connection, found by its operation code and path.
type Trace struct {
	key     traceKey
	m       *Monitor
	once    sync.Once
	written func()
	reply   atomic.Pointer[Reply]
}

// Reply is what the connection saw of an answer.
type Reply struct {
	// Zxid is the transaction of the answer's header. Of a write it is the write's own.
	Zxid int64
	// SessionID is the session of the connection that carried request and answer.
	SessionID int64
}

// Trace follows the next request with this operation code and path. Call it before the
// request is made, with a path that no other request in flight has, and Forget afterwards.
// written is called once the request is in the connection's queue: what is written later
// reaches the server later. It must not block, and is not called when the request is never written.
func (m *Monitor) Trace(op int32, path string, written func()) *Trace {
	t := &Trace{key: traceKey{op, path}, m: m, written: written}
	m.mu.Lock()
	m.traces[t.key] = t
	m.mu.Unlock()
	return t
}

// Reply returns what was seen of the answer, or nil.
func (t *Trace) Reply() *Reply { return t.reply.Load() }

// Forget ends the trace.
func (t *Trace) Forget() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.traces[t.key] == t {
		delete(t.m.traces, t.key)
	}
}

// traced returns the trace that waits for this request, and takes it out of the table.
func (m *Monitor) traced(op int32, path []byte) *Trace {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.traces) == 0 {
		return nil
	}
	k := traceKey{op, string(path)}
	t := m.traces[k]
	delete(m.traces, k)
	return t
}

func (t *Trace) wrote() { t.once.Do(t.written) }
