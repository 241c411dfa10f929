package framework

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// watchReads are the requests that set a watch of each kind.
var watchReads = [...]struct {
	op   wire.Op
	read func(*wire.Decoder) reading
}{
	watchData:     {wire.OpGetData, readData},
	watchExists:   {wire.OpExists, readStat},
	watchChildren: {wire.OpGetChildren2, readNames},
}

// WatchData reads a node's data and watches it for a change or its deletion. Without a node there
// is no watch: the error is ErrNoNode.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchData, path)
	return r.data, r.stat, w, err
}

// WatchExists reads a node's Stat and watches it for its creation, a change or its deletion. Of a
// missing node the error is ErrNoNode, and the watch, which is not nil then, waits for it.
func (s *Session) WatchExists(ctx context.Context, path string) (Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchExists, path)
	return r.stat, w, err
}

// WatchChildren lists the names below a node and watches for a change of that list or the node's
// deletion. Without a node there is no watch: the error is ErrNoNode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchChildren, path)
	return r.names, r.stat, w, err
}

// WatchNodes watches nodes for a change or their deletion and returns at once: the requests leave together.
// The event of a missing node is NodeDeleted. An event with an error says why a node is not watched.
func (s *Session) WatchNodes(paths ...string) []*Watch {
	out := make([]*Watch, len(paths))
	var calls []*link.Call
	s.watches.asking.Lock()
	defer s.watches.asking.Unlock()
	for i, path := range paths {
		out[i] = s.watches.join(watchKey{watchData, s.client.ns.full(path)})
		if e := out[i].entry; e.arm() {
			calls = append(calls, e.request(true, func(link.Reply) {}))
		}
	}
	if len(calls) > 0 {
		s.mon.Send(calls...)
	}
	return out
}

// watch joins the path's shared watch and reads the node, asking the server for a watch if none is armed.
func (s *Session) watch(ctx context.Context, kind watchKind, path string) (reading, *Watch, error) {
	full, err := s.check(path, 0)
	if err != nil {
		return reading{}, nil, Wrap("watch", path, err)
	}
	w := s.watches.join(watchKey{kind, full})
	r, err := again(ctx, s, func(a asker) (reading, error) { return w.entry.look(a) })
	if w.entry.unset(err) {
		w.Stop()
		w = nil
	}
	return r, w, Wrap("watch", path, err)
}

// look reads the node behind the request that arms the entry's watch, or arms it by the reading.
func (e *watchEntry) look(a asker) (reading, error) {
	f := make(flight[reading], 1)
	e.set.asking.Lock()
	a.s.mon.Send(e.request(e.arm(), func(r link.Reply) { f <- answer(r, watchReads[e.key.kind].read) }))
	e.set.asking.Unlock()
	o := wait(a.ctx, a.s, f)
	return o.v, o.err
}

// request prepares a read that sets the watch, or only reads. What the server was asked for is noted when it
// answers, also when the caller has given up by then.
func (e *watchEntry) request(arm bool, done func(link.Reply)) *link.Call {
	body := &wire.WatchRequest{Path: e.key.full, Watch: arm}
	return &link.Call{Op: watchReads[e.key.kind].op, Body: body, Done: func(r link.Reply) {
		if arm {
			e.asked(replyError(r))
		}
		done(r)
	}}
}

// unset tells that a read with this outcome has set no watch.
func (e *watchEntry) unset(err error) bool {
	return err != nil && !(e.key.kind == watchExists && errors.Is(err, ErrNoNode))
}

// asked notes the outcome of a request for the watch. Who has joined meanwhile is told that there is none,
// but for a lost connection: of that, everybody is told once it has been replaced.
func (e *watchEntry) asked(err error) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if !e.unset(err) {
		e.absent = err != nil
		e.tidy()
		return
	}
	e.armed = false
	defer func() {
		if there := e.set.entries[watchKey{watchExists, e.key.full}]; there != nil {
			there.tidy()
		}
	}()
	switch {
	case errors.Is(err, ErrSuspended):
		e.sweep()
	case errors.Is(err, ErrNoNode):
		e.tell(Event{Kind: NodeDeleted, Path: e.key.full})
	default:
		e.tell(Event{Path: e.key.full, Err: err})
	}
}
