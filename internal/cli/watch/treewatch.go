package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// treeWatcher watches a node and those below it, and reports changes.
type treeWatcher struct {
	streams *cli.Streams
	root    string
	most    int
	known   map[string]*watchedNode
	print   func(nodeChange) error

	begun   bool // the nodes that were there at first are no changes
	leftOut bool
	hidden  []string    // nodes that may not be read
	fired   chan string // paths to look at again
}

// watchedNode is a node as it was seen last.
type watchedNode struct {
	framework.Stat
	seen     int64 // the epoch of the session
	children []string
	stop     func() // ends its watches
}

// watchOnSession watches until ctx or the session ends, or a request fails.
func (w *treeWatcher) watchOnSession(ctx context.Context, s *framework.Session) error {
	w.fired = make(chan string, 2*w.most+2) // each watch fires once
	defer func() {
		for _, n := range w.known {
			n.stop()
		}
	}()
	for _, root := range w.roots() {
		if err := w.look(ctx, s, root); err != nil {
			return err
		}
	}
	for _, path := range w.unseen(s.Epoch()) { // deleted while there was no session
		if err := w.forget(path); err != nil {
			return err
		}
	}
	if !w.begun {
		w.begun = true
		w.streams.PrintNotice("watching %d nodes at and below %s", len(w.known), w.root)
	}
	for {
		select {
		case path := <-w.fired:
			if err := w.look(ctx, s, path); err != nil {
				return err
			}
		case <-s.Done():
			return s.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hide warns once of a node that may not be read. It and the nodes below it are not watched.
func (w *treeWatcher) hide(path string) {
	if !slices.Contains(w.hidden, path) {
		w.hidden = append(w.hidden, path)
		w.streams.PrintWarning("no permission to read %s: it and the nodes below it are not watched; give credentials in "+
			"LOCKSTEP_AUTH_FILE (user:password)", path)
	}
	delete(w.known, path)
}

// unseen are the nodes that were not found on this session, the deepest first.
func (w *treeWatcher) unseen(epoch int64) (paths []string) {
	for path, n := range w.known {
		isHidden := slices.ContainsFunc(w.hidden,
			func(hidden string) bool { return strings.HasPrefix(path, hidden+"/") })
		if n.seen != epoch && !isHidden {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths
}

// look reads a node, watches it, reports what has changed, and looks at children that are new on
// this session.
func (w *treeWatcher) look(ctx context.Context, s *framework.Session, path string) error {
	before := w.known[path]
	if before != nil {
		before.stop()
	} else if len(w.known) >= w.most && !slices.Contains(w.roots(), path) {
		return w.leaveOut(path)
	}
	data, stat, changed, err := s.WatchData(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return w.lookAtMissing(ctx, s, path)
	}
	if errors.Is(err, framework.ErrNoAuth) && path != w.root {
		w.hide(path)
		return nil
	}
	if err != nil {
		return err
	}
	n := &watchedNode{Stat: stat, seen: s.Epoch()}
	stopData := w.forward(path, changed)
	n.stop = stopData
	w.known[path] = n
	if err := w.compare(path, before, n, data); err != nil {
		return err
	}
	if stat.EphemeralOwner != 0 {
		return nil
	}
	names, _, listed, err := s.WatchChildren(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil // the other watch reports it
	}
	if err != nil {
		return err
	}
	stopList := w.forward(path, listed)
	n.stop = func() { stopData(); stopList() }
	n.children = cli.SortNames(names)
	for _, name := range n.children {
		child := znode.Join(path, name)
		if known := w.known[child]; known != nil && known.seen == s.Epoch() {
			continue
		}
		if err := w.look(ctx, s, child); err != nil {
			return err
		}
	}
	return nil
}

// besideSuffixes are the suffixes of the nodes that elections, locks, counters and configuration
// keep beside their own.
var besideSuffixes = []string{"~term", "~waiting", "~waits", "~writers", "~past"}

// roots are the watched node, and those that recipes keep beside it.
func (w *treeWatcher) roots() []string {
	all := []string{w.root}
	if w.root == "/" {
		return all
	}
	for _, suffix := range besideSuffixes {
		all = append(all, w.root+suffix)
	}
	return all
}

// lookAtMissing forgets a node that is gone. It watches for the creation of a root.
func (w *treeWatcher) lookAtMissing(ctx context.Context, s *framework.Session, path string) error {
	if err := w.forget(path); err != nil || !slices.Contains(w.roots(), path) {
		return err
	}
	_, created, err := s.WatchExists(ctx, path)
	switch {
	case err == nil: // it is there by now
		created.Stop()
		return w.look(ctx, s, path)
	case errors.Is(err, framework.ErrNoNode):
		w.forward(path, created)
		return nil
	}
	return err
}

// forward sends the path of a node to fired when its watch fires, until stop is called.
func (w *treeWatcher) forward(path string, watch *framework.Watch) (stop func()) {
	done, fired := make(chan struct{}), w.fired
	go func() {
		defer watch.Stop()
		select {
		case <-watch.C():
			select {
			case fired <- path:
			case <-done:
			}
		case <-done:
		}
	}()
	var stopped bool
	return func() {
		if !stopped {
			stopped = true
			close(done)
		}
	}
}

// compare reports how a node differs from before.
func (w *treeWatcher) compare(path string, before, now *watchedNode, data []byte) error {
	change := nodeChange{Path: path, Version: now.Version, Mzxid: now.Mzxid,
		Session: now.EphemeralOwner}
	switch {
	case before == nil && !w.begun:
		return nil
	case before == nil:
		change.Event = "created"
	case before.Czxid != now.Czxid:
		change.Event, change.Text = "created", "it was deleted and created again"
	case before.Mzxid != now.Mzxid:
		change.Event, change.Changes = "changed", now.Version-before.Version
	default:
		return nil
	}
	change.setData(data)
	return w.print(change)
}

// forget reports that a node and those below it are gone.
func (w *treeWatcher) forget(path string) error {
	n := w.known[path]
	if n == nil {
		return nil
	}
	var below []string
	for other := range w.known {
		if strings.HasPrefix(other, strings.TrimSuffix(path, "/")+"/") {
			below = append(below, other)
		}
	}
	slices.Sort(below)
	for _, gone := range append(slices.Clone(below), path) {
		if gone == path || w.known[gone] != nil {
			w.known[gone].stop()
			delete(w.known, gone)
			if err := w.print(nodeChange{Event: "deleted", Path: gone}); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveOut reports once that there are too many nodes.
func (w *treeWatcher) leaveOut(path string) error {
	if w.leftOut {
		return nil
	}
	w.leftOut = true
	return w.print(nodeChange{Event: "left out", Path: path,
		Text: fmt.Sprintf("more than %d nodes: from this one on, new nodes are not watched", w.most)})
}
