package framework

import (
	"net"
	"time"

	"github.com/lockstep-go/lockstep/internal/primitives"
)

// WatchEntries counts the paths that the session keeps a watch for.
func WatchEntries(s *Session) int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return len(s.watches.entries)
}

// ForgetWatchdogMain undoes WatchdogMain until restore is called.
func ForgetWatchdogMain() (restore func()) {
	was := watchdogMain.Swap(false)
	return func() { watchdogMain.Store(was) }
}

// GiveUpSettledCreate gives a protected create up that has created a node and told nobody yet.
func GiveUpSettledCreate(s *Session, created primitives.Created, cause error) error {
	p := &protectedCreate{s: s, done: make(chan error, 1)}
	p.deliverOrUndo([]primitives.Created{created}, nil)
	return p.giveUpCreate(cause)
}

// OwnedBytes is what the session counts for its ephemeral nodes.
func OwnedBytes(s *Session) int { return s.owned.totalBytes() }

// ReplaceResolver has servers' names looked up by r until restore is called.
func ReplaceResolver(r *net.Resolver) (restore func()) {
	former := resolver.Swap(r)
	return func() { resolver.Store(former) }
}

// HeartbeatInterval is the least time between two heartbeats.
func HeartbeatInterval(timeout time.Duration) time.Duration { return heartbeatInterval(timeout) }
