package members

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Inspect returns the group in its present state: it reads after a sync. If the group changes while
// it is read, the states of two members may be of different moments. The error is that of ctx, or
// wraps framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth.
func (g *Group) Inspect(ctx context.Context) (View, error) {
	if g.err != nil {
		return View{}, failure.Wrap("list members of", g.path, g.err)
	}
	var view View
	err := recipe.OnSession(ctx, g.client, func(s *framework.Session) error {
		if err := s.Sync(ctx, g.path); err != nil {
			return err
		}
		r := groupReader{group: g, anyMoment: true}
		if err := r.readGroup(ctx, s); err != nil {
			return err
		}
		view = r.makeView()
		return nil
	}, failure.IsTransient)
	return view, failure.Wrap("list members of", g.path, err)
}

// Follow yields the group, now and after each change of a member or a cordon.
//
// Changes have the order in which the servers made them, within a view and from view to view, also
// across lost connections and sessions: no change comes after a newer one. A slow reader skips to
// the latest view: it gets the latest state of each member, and does not see members that have
// joined and left in between. When ctx ends, Follow ends without an error. Any other error is
// yielded last: it wraps framework.ErrInvalid, framework.ErrClosed, framework.ErrAuthFailed or
// framework.ErrNoAuth. After a restore of the servers from a backup, a loop keeps its view, and the
// log says so once: begin another loop, or start the program again.
//
// A watcher watches the directory only: its data and its children. After a join it lists the group
// and reads the new member, and after a member or a cordon has changed it reads all members, up to
// a thousand in a request, at most ten times a second. It does so for joins, too, if the group has
// more than 100 members. It decodes those that have changed.
func (g *Group) Follow(ctx context.Context) iter.Seq2[View, error] {
	return func(yield func(View, error) bool) {
		w := &viewWatcher{reader: groupReader{group: g}, yield: yield}
		err := g.err
		if err == nil {
			w.tel = newWatchTelemetry(g.client, string(Joined), string(Rejoined), string(Changed), string(Left))
			err = recipe.OnSession(ctx, g.client, func(s *framework.Session) error { return w.watchSession(ctx, s) },
				failure.IsTransient)
		}
		if err = failure.LoopEnd(ctx, "watch", g.path, err); err != nil {
			yield(View{}, err)
		}
	}
}

// smallGroup is how many nodes a group has whose joins are read at once: a list of a larger one is
// long, so joins that follow each other share one.
const smallGroup = 100

// readInterval is the shortest time between two reads of all members, and between two lists of a
// larger group.
const readInterval = 100 * time.Millisecond

// viewWatcher is one call of Follow.
type viewWatcher struct {
	reader groupReader
	tel    watchTelemetry
	yield  func(View, error) bool
	last   *View     // the view that was yielded last, or nil
	older  bool      // the latest list was older than a former one
	readAt time.Time // when all members were read, or a large group was listed, last
}

// watchSession watches until ctx or the session ends. It begins with a sync, and syncs again after
// a reconnect: the new server may lag behind the former one.
func (w *viewWatcher) watchSession(ctx context.Context, s *framework.Session) error {
	back := recipe.NewBackoff(w.reader.group.client)
	if w.last != nil {
		if err := w.spreadRead(ctx); err != nil {
			return err
		}
	}
	for sync := true; ; {
		if sync {
			if err := primitives.Of(s).SyncForWatch(ctx, w.reader.group.path, w.last == nil); err != nil {
				return err
			}
		}
		event, err := w.watchOnce(ctx, s)
		switch {
		case errors.Is(err, errOlder):
			if !w.older { // after a restore from a backup this goes on for long
				w.reader.group.client.Logger().Warn(
					"a server shows an older state of a group than was seen before; it is read again", "path",
					w.reader.group.path)
			}
			w.older = true
			if err := back.Pause(ctx); err != nil {
				return err
			}
			sync = true
			continue
		case err != nil:
			return err
		}
		back.Reset()
		w.older = false
		sync = event.Kind == framework.Reconnected || event.Err != nil
		if event.Kind == framework.Reconnected {
			if err := w.spreadRead(ctx); err != nil {
				return err
			}
		}
	}
}

// spreadRead waits for a random time below Config.FollowSpread, so that the watchers that a lost
// server has disconnected do not all read at once.
func (w *viewWatcher) spreadRead(ctx context.Context) error {
	return recipe.Pause(ctx, rand.N(max(1, w.reader.group.client.Config().FollowSpread)))
}

// watchOnce reads the group, yields a view if it has changed, and waits for the next event.
func (w *viewWatcher) watchOnce(ctx context.Context, s *framework.Session) (framework.Event, error) {
	path := w.reader.group.path
	_, stat, written, err := s.WatchData(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return w.waitForDirectory(ctx, s)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer written.Stop()
	if stat.Mzxid != w.reader.dirMzxid || len(w.reader.nodes) > smallGroup {
		if err := recipe.Pause(ctx, readInterval-time.Since(w.readAt)); err != nil {
			return framework.Event{}, err
		}
		w.readAt = time.Now()
	}
	names, stat, listed, err := s.WatchChildren(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return w.waitForDirectory(ctx, s)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer listed.Stop()
	err = w.reader.readNodes(ctx, s, names, stat)
	if errors.Is(err, errListAgain) {
		return framework.Event{Kind: framework.NodeChanged}, nil
	}
	if err != nil {
		return framework.Event{}, err
	}
	if err := w.yieldView(); err != nil {
		return framework.Event{}, err
	}
	_, event, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Watch: written, SecondWatch: listed})
	return event, err
}

// waitForDirectory yields an empty view, unless the last one was empty, and waits until the
// directory is created.
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

// yieldView yields a view if a member or a cordon has changed since the last one.
func (w *viewWatcher) yieldView() error {
	view := w.reader.makeView()
	view.addChanges(w.last)
	if w.last != nil && len(view.Changes) == 0 && sameCordons(*w.last, view) {
		w.last.Zxid = view.Zxid
		return nil
	}
	w.last = &view
	for _, c := range view.Changes {
		w.tel.countChange(string(c.Kind))
	}
	if !w.yield(view.cloneView(), nil) {
		return failure.ErrLoopLeft
	}
	return nil
}

// sameCordons reports whether two views have the same cordons in the same states.
func sameCordons(a, b View) bool {
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
