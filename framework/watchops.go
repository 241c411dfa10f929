package framework

import (
	"context"
	"errors"
)

// reading is what a watched read returned.
type reading struct {
	data  []byte
	names []string
	stat  Stat
}

// WatchData reads a node's data and watches it for a change or its deletion. Without a node there
// is no watch: the error is ErrNoNode.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchData, path, func(z *zkConn, full string, arm bool) (r reading, err error) {
		r.data, r.stat, err = z.get(full, arm)
		return r, err
	})
	return r.data, r.stat, w, err
}

// WatchExists reads a node's Stat and watches it for its creation, a change or its deletion. Of a
// missing node the error is ErrNoNode, and the watch, which is not nil then, waits for it.
func (s *Session) WatchExists(ctx context.Context, path string) (Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchExists, path, func(z *zkConn, full string, arm bool) (r reading, err error) {
		r.stat, err = z.exists(full, arm)
		return r, err
	})
	return r.stat, w, err
}

// WatchChildren lists the names below a node and watches for a change of that list or the node's
// deletion. Without a node there is no watch: the error is ErrNoNode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	r, w, err := s.watch(ctx, watchChildren, path, func(z *zkConn, full string, arm bool) (r reading, err error) {
		r.names, r.stat, err = z.children(full, arm)
		return r, err
	})
	return r.names, r.stat, w, err
}

// watch joins the path's shared watch and reads the node, asking the server for a watch if none is armed.
func (s *Session) watch(ctx context.Context, kind watchKind, path string,
	look func(z *zkConn, full string, arm bool) (reading, error)) (reading, *Watch, error) {
	full, err := s.check(path, 0)
	if err != nil {
		return reading{}, nil, Wrap("watch", path, err)
	}
	w := s.watches.join(watchKey{kind, full})
	entry := w.entry // for the call, which may outlive this function
	r, err := again(ctx, s, func(z *zkConn, _ int) (reading, error) {
		return entry.look(func(arm bool) (reading, error) { return look(z, full, arm) })
	})
	if err != nil && !(kind == watchExists && errors.Is(err, ErrNoNode)) {
		w.Stop()
		w = nil
	}
	return r, w, Wrap("watch", path, err)
}

// look reads the node once the entry's watch is armed, or arms it by the reading. It goes on when its
// caller gave up, so that what the server was asked for is always known.
func (e *watchEntry) look(read func(arm bool) (reading, error)) (reading, error) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	arm := e.arm()
	r, err := read(arm)
	if arm && err != nil && !(e.key.kind == watchExists && errors.Is(err, ErrNoNode)) {
		e.disarm()
	}
	return r, err
}
