package framework

import "errors"

// Discard deletes a node of this session in the background, until it is gone or the session has
// ended, and returns at once. The channel is closed when that is so. Client.Close waits for it.
func (s *Session) Discard(path string) <-chan struct{} {
	done := make(chan struct{})
	started := s.tasks.start(func() {
		defer close(done)
		s.discard(path)
	})
	if !started { // the session has ended, and the node with it
		close(done)
	}
	return done
}

// discard calls the connection itself: it is in the background already, and closing the connection
// ends the call.
func (s *Session) discard(path string) {
	var back retries
	full := s.client.ns.full(path)
	for s.await(s.ctx) == nil {
		err := s.zk.delete(full, AnyVersion)
		if err == nil || errors.Is(err, ErrNoNode) {
			return
		}
		if !errors.Is(err, ErrSuspended) {
			s.client.log.Warn("a node could not be deleted yet", "path", path, "error", err)
		}
		if back.pause(s.ctx, s.client.cfg) != nil {
			return
		}
	}
}
