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

func (s *Session) discard(path string) {
	back := newBackoff(s.client.cfg)
	for {
		err := s.Delete(s.ctx, path, AnyVersion)
		if err == nil || errors.Is(err, ErrNoNode) || s.ctx.Err() != nil {
			return
		}
		s.client.log.Warn("a node could not be deleted yet", "path", path, "error", err)
		if pause(s.ctx, back.NextBackOff()) != nil {
			return
		}
	}
}
