package link

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Send queues requests, in this order: what is sent later reaches the server later, unless it is
// urgent. It never waits for the network. Without an admitted connection it returns false, and they
// have been answered with ErrNotSent.
func (m *Monitor) Send(calls ...*Call) (queued bool) { return m.sendCalls(calls, false) }

// Offer is Send for requests of any size: it refuses them with ErrFull while MaxQueued bytes wait
// to be written, unless the first is urgent. Room says when to try again.
func (m *Monitor) Offer(calls ...*Call) (queued bool) { return m.sendCalls(calls, true) }

func (m *Monitor) sendCalls(calls []*Call, bounded bool) (queued bool) {
	err := ErrNotSent
	if c := m.admittedConnection(calls[0].Op); c != nil {
		err = c.queueCalls(calls, bounded)
	}
	return answerUnqueued(m.cfg.Answered, calls, err)
}

// Room returns a channel that is closed once the connection takes more requests, or has ended.
func (m *Monitor) Room() <-chan struct{} {
	m.mu.Lock()
	c := m.cur
	m.mu.Unlock()
	if c != nil {
		if room := c.awaitRoom(); room != nil {
			return room
		}
	}
	room := make(chan struct{})
	close(room)
	return room
}

// admittedConnection returns the connection that takes a request now, or nil.
func (m *Monitor) admittedConnection(op wire.Op) *conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cur
	if c == nil || !m.status.Up || c.generation != m.status.Generation || !c.admitted && op != wire.OpAuth {
		return nil
	}
	return c
}

// IsStuck reports whether a call that was queued before a time has no answer yet on the connection
// of a generation.
func (m *Monitor) IsStuck(generation int64, before time.Duration) bool {
	c := m.connectionOf(generation)
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.pending {
		if call.queuedAt < before {
			return true
		}
	}
	return false
}

// connectionOf returns the present connection if it is of this generation, or nil.
func (m *Monitor) connectionOf(generation int64) *conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cur == nil || m.cur.generation != generation {
		return nil
	}
	return m.cur
}

// Admit lets requests pass on the connection of a generation, and queues the first ones before all
// others. It makes the first ones urgent, so that no urgent request leaves before them. Until then
// the connection takes credentials alone, so that nothing is asked without them.
func (m *Monitor) Admit(generation int64, first ...*Call) {
	m.mu.Lock()
	err := ErrNotSent
	if m.cur != nil && m.cur.generation == generation {
		err = nil
		for _, call := range first {
			call.Urgent = true
		}
		if len(first) > 0 {
			err = m.cur.queueCalls(first, false)
		}
		m.cur.admitted = true
	}
	m.mu.Unlock()
	answerUnqueued(m.cfg.Answered, first, err)
}

// Seen is the newest transaction that an answer has told of.
func (m *Monitor) Seen() int64 { return m.seen.Load() }

// noteSeen notes the newest transaction that a server has told of.
func (m *Monitor) noteSeen(zxid int64) {
	for {
		seen := m.seen.Load()
		if zxid <= seen || m.seen.CompareAndSwap(seen, zxid) {
			return
		}
	}
}

// PingPairs returns the latest pairs of the connection of a generation, in order. Changed tells of
// each new one.
func (m *Monitor) PingPairs(generation int64) []PingPair {
	c := m.connectionOf(generation)
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]PingPair(nil), c.pings.latest...)
}
