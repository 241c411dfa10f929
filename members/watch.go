package members

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// List returns the group as it is now, behind a sync.
func (g *Group) List(ctx context.Context) (*View, error) {
	if g.err != nil {
		return nil, failure.Wrap("list members of", g.path, g.err)
	}
	var view *View
	err := recipe.OnSession(ctx, g.client, func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil {
			return err
		}
		r := groupReader{group: g, any: true}
		if err := r.readGroup(ctx, s); err != nil {
			return err
		}
		view = r.makeView()
		return nil
	}, failure.IsTransient)
	return view, failure.Wrap("list members of", g.path, err)
}

// Watch yields the group, now and after each change of a member or a cordon.
//
// Changes are told in the order in which the servers made them, within a view and from view to view, also across lost connections and sessions: none is older than one before. A slow reader
// skips to the latest view: of each member it gets the latest state, and it does not learn of members that have joined and left in between. Watch
// ends silently when ctx ends. Any other error that ends it is yielded last: it wraps framework.ErrClosed or framework.ErrNoAuth.
//
// A watcher watches the directory, and none of the members. It reads a member that has joined, and all members when one has told something new, at most ten times a
// second: 500 members a request.
func (g *Group) Watch(ctx context.Context) iter.Seq2[*View, error] {
	return func(yield func(*View, error) bool) {
		w := &viewWatcher{reader: groupReader{group: g}, yield: yield}
		err := g.err
		if err == nil {
			w.tel = newWatchTelemetry(g.client, string(Joined), string(Rejoined), string(Changed), string(Left))
			err = recipe.OnSession(ctx, g.client, func(s *framework.Session) error { return w.watchSession(ctx, s) }, failure.IsTransient)
		}
		if err = failure.LoopEnd(ctx, "watch", g.path, err); err != nil {
			yield(nil, err)
		}
	}
}

// readInterval is the shortest time between two reads of all members.
const readInterval = 100 * time.Millisecond

// viewWatcher is one loop over a group's views.
type viewWatcher struct {
	reader groupReader
	tel    watchTelemetry
	yield  func(*View, error) bool
	last   *View // as yielded, or nil
	readAt time.Time
}

// watchSession watches until the session is lost. It begins with a sync, and makes another after a reconnect: the server may not know yet what another one has shown.
func (w *viewWatcher) watchSession(ctx context.Context, s *framework.Session) error {
	back := recipe.NewBackoff(w.reader.group.client)
	if w.last != nil {
		if err := w.spreadRead(ctx); err != nil {
			return err
		}
	}
	for sync := true; ; {
		if sync {
			if err := s.Sync(ctx, w.reader.group.path); err != nil {
				return err
			}
		}
		event, err := w.watchOnce(ctx, s)
		switch {
		case errors.Is(err, errOlder):
			w.reader.group.client.Logger().Warn("a server shows an older state of a group than was seen before; it is read again", "path", w.reader.group.path)
			if err := back.Pause(ctx); err != nil {
				return err
			}
			sync = true
			continue
		case err != nil:
			return err
		}
		back.Reset()
		sync = event.Kind == framework.Reconnected || event.Err != nil
		if event.Kind == framework.Reconnected {
			if err := w.spreadRead(ctx); err != nil {
				return err
			}
		}
	}
}

// spreadRead waits at random, so that the watchers of a lost server do not all read at once.
func (w *viewWatcher) spreadRead(ctx context.Context) error {
	return recipe.Pause(ctx, rand.N(max(1, w.reader.group.client.Config().FollowSpread)))
}

// watchOnce reads the group, yields it if it has changed, and waits for the next change.
func (w *viewWatcher) watchOnce(ctx context.Context, s *framework.Session) (framework.Event, error) {
	path := w.reader.group.path
	_, st, written, err := s.WatchData(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return w.waitForDirectory(ctx, s)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer written.Stop()
	if st.Mzxid != w.reader.written {
		if err := recipe.Pause(ctx, readInterval-time.Since(w.readAt)); err != nil {
			return framework.Event{}, err
		}
		w.readAt = time.Now()
	}
	names, st, listed, err := s.WatchChildren(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return w.waitForDirectory(ctx, s)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer listed.Stop()
	err = w.reader.readNodes(ctx, s, names, st)
	if errors.Is(err, errListAgain) {
		return framework.Event{Kind: framework.NodeChanged}, nil
	}
	if err != nil {
		return framework.Event{}, err
	}
	if err := w.yieldView(); err != nil {
		return framework.Event{}, err
	}
	_, event, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Watch: written, Second: listed})
	return event, err
}

// waitForDirectory waits until there is a directory. Without one there are no members.
func (w *viewWatcher) waitForDirectory(ctx context.Context, s *framework.Session) (framework.Event, error) {
	_, created, err := s.WatchExists(ctx, w.reader.group.path)
	if !errors.Is(err, framework.ErrNoNode) {
		if err == nil {
			created.Stop()
		}
		return framework.Event{Kind: framework.NodeCreated}, err
	}
	w.reader.clearGroup()
	if err := w.yieldView(); err != nil {
		created.Stop()
		return framework.Event{}, err
	}
	return recipe.WaitForWatch(ctx, s, created)
}

// yieldView yields the group if it has changed.
func (w *viewWatcher) yieldView() error {
	view := w.reader.makeView()
	view.addChanges(w.last)
	if w.last != nil && len(view.Changes) == 0 && sameCordons(w.last, view) {
		w.last.Zxid = view.Zxid
		return nil
	}
	w.last = view
	for _, c := range view.Changes {
		w.tel.countChange(string(c.Kind))
	}
	if !w.yield(view.cloneView(), nil) {
		return failure.ErrLoopLeft
	}
	return nil
}

func sameCordons(a, b *View) bool {
	if len(a.Cordons) != len(b.Cordons) {
		return false
	}
	for i := range a.Cordons {
		if a.Cordons[i].ID != b.Cordons[i].ID || a.Cordons[i].zxid != b.Cordons[i].zxid {
			return false
		}
	}
	return true
}
