package framework

import (
	"errors"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Discarded is a deletion in the background.
type Discarded struct {
	s      *Session
	path   string // of a single node
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

// end tells that the nodes are gone, or that there is no session to delete them in.
func (d *Discarded) end(zxid int64) {
	d.zxid = zxid
	close(d.done)
	d.s.tasks.end()
}

// Discard deletes nodes of this session in the background, until they are gone or the session has
// ended, and returns at once. Client.Close waits for it.
func (s *Session) Discard(paths ...string) *Discarded { return s.DiscardThen(nil, paths...) }

// DiscardThen is Discard, and calls queued once: when the deletion of a single node is in the
// connection's queue, or when the nodes are known to be gone. Whatever this session asks for later reaches the servers later: if the
// connection is lost before the answer, the deletion is the first request on the next one. queued is not called when the session ends before, and must
// not block; it may be called before DiscardThen returns.
func (s *Session) DiscardThen(queued func(), paths ...string) *Discarded {
	d := &Discarded{s: s, done: make(chan struct{}), queued: queued}
	if !s.tasks.begin() { // the session has ended, and the nodes with it
		close(d.done)
		return d
	}
	if len(paths) != 1 {
		go d.discardAll(paths)
		return d
	}
	d.path = paths[0]
	s.deletions.start(d)
	return d
}

// DiscardOwn is DiscardThen for a node whose name others may use too: before each try it looks whether the node
// is still the one that this session has created. The nodes of companions, whose names nobody else uses, are
// deleted in the same transaction, or by themselves when the node is another's.
func (s *Session) DiscardOwn(queued func(), node Created, companions ...string) *Discarded {
	d := &Discarded{s: s, done: make(chan struct{}), queued: queued}
	if !s.tasks.begin() {
		close(d.done)
		return d
	}
	go d.insistOwn(node, companions)
	return d
}

// insistOwn deletes a node while it is this session's, and its companions, and ends.
func (d *Discarded) insistOwn(node Created, companions []string) {
	s := d.s
	back := newRetries(s.client.cfg)
	for s.await(s.ctx) == nil {
		paths := slices.Clone(companions)
		if st, err := s.Exists(s.ctx, node.Path); err == nil && st.Czxid == node.Zxid {
			paths = append(paths, node.Path)
		}
		if len(paths) == 0 {
			d.written()
			break
		}
		zxid, missing, err := d.deleteTogether(paths)
		if err == nil {
			d.end(zxid)
			return
		}
		if missing != "" {
			companions = slices.DeleteFunc(slices.Clone(companions), func(path string) bool { return path == missing })
			continue
		}
		if !errors.Is(err, ErrSuspended) {
			s.client.log.Warn("a node could not be deleted yet", "path", node.Path, "error", err)
		}
		if back.Pause(s.ctx) != nil {
			break
		}
	}
	d.end(0)
}

// deleteTogether tries once to delete nodes in one transaction. missing is a path that is not there, if that is
// why the servers refused.
func (d *Discarded) deleteTogether(paths []string) (zxid int64, missing string, err error) {
	if len(paths) == 1 {
		zxid, err := d.delete(d.s.client.ns.full(paths[0]))
		if errors.Is(err, ErrNoNode) {
			missing = paths[0]
		}
		return zxid, missing, err
	}
	parts := make([]wire.MultiPart, len(paths))
	for i, path := range paths {
		parts[i] = deletePart(d.s.client.ns.full(path), AnyVersion)
	}
	call, f := request(wire.OpMulti, &wire.MultiRequest{Parts: parts}, readResults)
	if d.s.mon.Send(call) {
		d.written()
	}
	o := wait(d.s.ctx, d.s, f)
	if o.err != nil {
		return 0, "", o.err
	}
	for i, r := range o.v {
		if errors.Is(r.Err, ErrNoNode) && i < len(paths) {
			missing = paths[i]
		}
	}
	if err = refused(o.v); err == nil {
		d.s.owned.deletedBelowRoot(paths...)
	}
	return o.zxid, missing, err
}

// deletion prepares one try to delete a node.
func deletion(full string, done func(link.Reply)) *link.Call {
	return &link.Call{Op: wire.OpDelete, Body: &wire.NumberRequest{Path: full, Number: AnyVersion}, Done: done}
}

func deleted(err error) bool { return err == nil || errors.Is(err, ErrNoNode) }

// discardAll deletes nodes in one transaction, or one after the other when that is refused.
func (d *Discarded) discardAll(paths []string) {
	if d.together(paths) {
		d.written()
		d.end(0)
		return
	}
	for _, path := range paths {
		d.repeat(path)
	}
	d.end(0)
}

// together deletes all nodes in one transaction, or tells that it could not.
func (d *Discarded) together(paths []string) bool {
	s := d.s
	if len(paths) == 0 || s.await(s.ctx) != nil {
		return false
	}
	parts := make([]wire.MultiPart, len(paths))
	for i, path := range paths {
		parts[i] = deletePart(s.client.ns.full(path), AnyVersion)
	}
	if (asker{ctx: s.ctx, s: s}).multi(parts).err != nil {
		return false
	}
	s.owned.deletedBelowRoot(paths...)
	return true
}

// insist deletes a node, and ends.
func (d *Discarded) insist(path string) { d.end(d.repeat(path)) }

// repeat deletes a node while it is there.
func (d *Discarded) repeat(path string) (zxid int64) {
	s := d.s
	back := newRetries(s.client.cfg)
	for s.await(s.ctx) == nil {
		zxid, err := d.delete(s.client.ns.full(path))
		if deleted(err) {
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

// delete tries once.
func (d *Discarded) delete(full string) (zxid int64, err error) {
	f := make(flight[struct{}], 1)
	if d.s.mon.Send(deletion(full, func(r link.Reply) { f <- answer(r, nothing) })) {
		d.written()
	}
	o := wait(d.s.ctx, d.s, f)
	if deleted(o.err) {
		d.s.owned.deleted(full)
	}
	if o.err != nil {
		return 0, o.err
	}
	return o.zxid, nil
}
