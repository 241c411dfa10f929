package framework

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Discarded is a deletion in the background.
type Discarded struct {
	done chan struct{}
	zxid int64
}

// Done is closed when the node is gone or the session has ended.
func (d *Discarded) Done() <-chan struct{} { return d.done }

// Zxid is the transaction that deleted the node, or 0 when it is not known. It may be asked for once
// Done is closed.
func (d *Discarded) Zxid() int64 { return d.zxid }

// Discard deletes a node of this session in the background, until it is gone or the session has
// ended, and returns at once. Client.Close waits for it.
func (s *Session) Discard(path string) *Discarded {
	d := &Discarded{done: make(chan struct{})}
	started := s.tasks.start(func() {
		defer close(d.done)
		d.zxid = s.discard(path)
	})
	if !started { // the session has ended, and the node with it
		close(d.done)
	}
	return d
}

// discard calls the connection itself: it is in the background already, and closing the connection
// ends the call.
func (s *Session) discard(path string) (zxid int64) {
	back := newRetries(s.client.cfg)
	full := s.client.ns.full(path)
	for s.await(s.ctx) == nil {
		zxid, err := s.deleteTraced(full)
		if err == nil || errors.Is(err, ErrNoNode) {
			return zxid
		}
		if !errors.Is(err, ErrSuspended) {
			s.client.log.Warn("a node could not be deleted yet", "path", path, "error", err)
		}
		if back.Pause(s.ctx) != nil {
			return 0
		}
	}
	return 0
}

// deleteTraced deletes a node and returns the transaction that did, if it was this one.
func (s *Session) deleteTraced(full string) (zxid int64, err error) {
	t := s.mon.Trace(int32(wire.OpDelete), full, func() {})
	defer t.Forget()
	if err := s.zk.delete(full, AnyVersion); err != nil {
		return 0, err
	}
	if r := t.Reply(); r != nil {
		return r.Zxid, nil
	}
	return 0, nil
}
