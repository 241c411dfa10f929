package framework

import (
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Discarded is a deletion in the background.
type Discarded struct {
	done   chan struct{}
	zxid   int64
	once   sync.Once
	queued func()
}

// Done is closed when the nodes are gone or the session has ended.
func (d *Discarded) Done() <-chan struct{} { return d.done }

// Zxid is the transaction that deleted the node, or 0 when it is not known. It may be asked for once
// Done is closed.
func (d *Discarded) Zxid() int64 { return d.zxid }

func (d *Discarded) written() {
	if d.queued != nil {
		d.once.Do(d.queued)
	}
}

// Discard deletes nodes of this session in the background, until they are gone or the session has
// ended, and returns at once. Client.Close waits for it.
func (s *Session) Discard(paths ...string) *Discarded { return s.DiscardThen(nil, paths...) }

// DiscardThen is Discard, and calls queued once: when the deletion of the first node is in the
// connection's queue, so that whatever this session asks for later reaches the servers later, or when
// the node is known to be gone. It is not called when the session ends before, and must not block.
func (s *Session) DiscardThen(queued func(), paths ...string) *Discarded {
	d := &Discarded{done: make(chan struct{}), queued: queued}
	started := s.tasks.start(func() {
		defer close(d.done)
		if len(paths) > 1 && s.discardTogether(paths) {
			d.written()
			return
		}
		for _, path := range paths {
			d.zxid = s.discard(d, path, func() bool { return true })
		}
	})
	if !started { // the session has ended, and the nodes with it
		close(d.done)
	}
	return d
}

// DiscardOwn is DiscardThen for a node whose name others may use too: it looks each time before it deletes
// whether the node is still the one that this session has created.
func (s *Session) DiscardOwn(queued func(), node Created) *Discarded {
	d := &Discarded{done: make(chan struct{}), queued: queued}
	started := s.tasks.start(func() {
		defer close(d.done)
		d.zxid = s.discard(d, node.Path, func() bool {
			st, err := s.Exists(s.ctx, node.Path)
			return err == nil && st.Czxid == node.Zxid
		})
	})
	if !started {
		close(d.done)
	}
	return d
}

// discardTogether deletes all nodes in one transaction, or tells that it could not.
func (s *Session) discardTogether(paths []string) bool {
	if s.await(s.ctx) != nil {
		return false
	}
	reqs := make([]any, len(paths))
	for i, path := range paths {
		reqs[i] = deleteRequest(s.client.ns.full(path), AnyVersion)
	}
	_, err := s.zk.multi(reqs)
	return err == nil
}

// discard deletes a node while it is there. It calls the connection itself: it is in the background already,
// and closing the connection ends the call.
func (s *Session) discard(d *Discarded, path string, there func() bool) (zxid int64) {
	back := newRetries(s.client.cfg)
	full := s.client.ns.full(path)
	for s.await(s.ctx) == nil {
		if !there() {
			d.written()
			return 0
		}
		zxid, err := s.deleteTraced(full, d.written)
		if err == nil || errors.Is(err, ErrNoNode) {
			d.written()
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
func (s *Session) deleteTraced(full string, written func()) (zxid int64, err error) {
	t := s.mon.Trace(int32(wire.OpDelete), full, written)
	defer t.Forget()
	if err := s.zk.delete(full, AnyVersion); err != nil {
		return 0, err
	}
	if r := t.Reply(); r != nil {
		return r.Zxid, nil
	}
	return 0, nil
}
