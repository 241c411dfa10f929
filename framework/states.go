package framework

import (
	"fmt"
	"sync"
)

// State is a session's state.
type State int

// The states of a session. Lost is final: the client opens a new session with the next epoch.
const (
	// Connecting: no server has confirmed the session yet.
	Connecting State = iota
	// Connected: a server is connected, and has answered a proof of life, or a sync while the
	// session is dormant.
	Connected
	// Suspended: the connection is gone; the session may come back. Holds stand until the session's
	// lease ends.
	Suspended
	// Lost: the session has ended, and with it everything that was granted to the session.
	Lost
)

func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("state %d", int(s))
}

// StateChange is one step of a client's sessions.
type StateChange struct {
	// Epoch counts the client's sessions from 1.
	Epoch int64
	// SessionID is the server's number of the session, 0 while connecting.
	SessionID SessionID
	// State is the new state.
	State State
	// Cause is the reason for Suspended and Lost.
	Cause error
}

// broadcast hands every value to every subscriber, in order. It keeps the values that a slow
// subscriber has not taken yet.
type broadcast[T any] struct {
	mu   sync.Mutex
	tail *broadcastEntry[T]
}

type broadcastEntry[T any] struct {
	ready chan struct{} // closed once value and next are set
	value T
	next  *broadcastEntry[T]
}

func (e *broadcastEntry[T]) isReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

func newBroadcast[T any]() *broadcast[T] {
	return &broadcast[T]{tail: &broadcastEntry[T]{ready: make(chan struct{})}}
}

func (f *broadcast[T]) publish(v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.tail
	e.value, e.next = v, &broadcastEntry[T]{ready: make(chan struct{})}
	f.tail = e.next
	close(e.ready)
}

// subscribe returns the entry of the next value.
func (f *broadcast[T]) subscribe() *broadcastEntry[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tail
}
