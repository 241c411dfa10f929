package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// followService calls take with a service's instances, now and after each change, until ctx ends or
// with an error that is not transient. It watches the directory only, since each change of an
// instance by this package writes the directory.
//
// It syncs at the beginning of each session, after each reconnect and before each refresh. A list
// that becomes empty after ZooKeeper's own sync is read again after Session.Sync. So an empty list
// means that the service has no instances.
func (r *Registry) followService(ctx context.Context, service string, refresh time.Duration,
	take func([]Instance, []refusedInstance)) error {
	f := listFollower{registry: r, dir: r.serviceDir(service), refresh: refresh, take: take}
	return recipe.OnSession(ctx, r.client, func(s *framework.Session) error { return f.onSession(ctx, s) },
		failure.IsTransient)
}

// listFollower is one call of followService.
type listFollower struct {
	registry             *Registry
	dir                  string
	refresh              time.Duration
	take                 func([]Instance, []refusedInstance)
	hasRead              bool      // a list was read, perhaps on a former session
	lastListHadInstances bool      // the last list that was taken had instances
	emptyListUnconfirmed bool      // an empty list was not taken: it is read again after Session.Sync
	due                  time.Time // when the last read was due, at one read in each readInterval
}

// A pool reads up to readBurst lists without a pause, and then one in each readInterval. So many
// changes in a row, as when a service is started, cost few reads.
const (
	readBurst    = 10
	readInterval = 100 * time.Millisecond
)

// waitToRead waits until the limit permits to read the next list.
func (f *listFollower) waitToRead(ctx context.Context, s *framework.Session) error {
	now := time.Now()
	if earliest := now.Add(-readBurst * readInterval); f.due.Before(earliest) {
		f.due = earliest
	}
	f.due = f.due.Add(readInterval)
	if !f.due.After(now) {
		return nil
	}
	return waitFor(ctx, s, f.due.Sub(now))
}

// waitFor waits for d, or until ctx or the session ends.
func waitFor(ctx context.Context, s *framework.Session, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	_, _, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Timer: timer.C})
	return err
}

// onSession follows the service until ctx or the session ends.
func (f *listFollower) onSession(ctx context.Context, s *framework.Session) error {
	sync, strict := true, false
	if f.hasRead { // the pools that a lost server has disconnected come here at once
		if err := f.waitToSpreadReads(ctx, s); err != nil {
			return err
		}
	}
	for {
		if sync {
			strict = !f.hasRead || f.emptyListUnconfirmed
			if err := primitives.Of(s).SyncForWatch(ctx, f.dir, strict); err != nil {
				return err
			}
		}
		event, err := f.readOnce(ctx, s, !sync || strict)
		if err != nil {
			return err
		}
		sync = event.Kind == framework.Reconnected || event.Kind == 0
		if event.Kind == framework.Reconnected {
			if err := f.waitToSpreadReads(ctx, s); err != nil {
				return err
			}
		}
	}
}

// waitToSpreadReads waits for a random time, below Config.FollowSpread and a quarter of the session
// timeout, so that the pools that a lost server has disconnected do not all read at once.
func (f *listFollower) waitToSpreadReads(ctx context.Context, s *framework.Session) error {
	return waitFor(ctx, s, rand.N(max(1, min(f.registry.client.Config().FollowSpread, s.Timeout()/4))))
}

// readOnce reads the instances, calls take, and waits for the next event. The event's Kind is 0
// when the list is to be read after a sync: when a refresh is due, when a watch has failed, or at
// once when the list is empty and the read does not prove that. provesEmpty says whether the read
// proves that an empty list is true.
func (f *listFollower) readOnce(ctx context.Context, s *framework.Session, provesEmpty bool) (framework.Event, error) {
	if err := f.waitToRead(ctx, s); err != nil {
		return framework.Event{}, err
	}
	_, _, changed, err := s.WatchData(ctx, f.dir)
	if errors.Is(err, framework.ErrNoNode) {
		return f.waitForDirectory(ctx, s, provesEmpty)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer changed.Stop()
	names, _, joined, err := s.WatchChildren(ctx, f.dir)
	if errors.Is(err, framework.ErrNoNode) {
		return f.waitForDirectory(ctx, s, provesEmpty)
	}
	if err != nil {
		return framework.Event{}, err
	}
	defer joined.Stop()
	all, refused, err := readInstances(ctx, s, f.dir, names)
	if err != nil {
		return framework.Event{}, err
	}
	if !f.takeList(all, refused, provesEmpty) {
		return framework.Event{}, nil
	}
	timer := time.NewTimer(f.refresh/2 + rand.N(f.refresh))
	defer timer.Stop()
	_, event, err := recipe.WaitForFirst(ctx, s.Context(),
		recipe.Sources{Watch: joined, SecondWatch: changed, Timer: timer.C})
	return event, err
}

// takeList calls take, unless the list is empty where the last one was not, and the read does not
// prove that: a leader may answer ZooKeeper's own sync from a former state, in which the instances
// of now were not registered yet.
func (f *listFollower) takeList(all []Instance, refused []refusedInstance, provesEmpty bool) (taken bool) {
	if f.emptyListUnconfirmed = f.lastListHadInstances && len(all) == 0 && !provesEmpty; f.emptyListUnconfirmed {
		return false
	}
	f.hasRead, f.lastListHadInstances = true, len(all) > 0
	f.take(all, refused)
	return true
}

// waitForDirectory calls take with no instances, and waits until the service's directory is
// created.
func (f *listFollower) waitForDirectory(ctx context.Context, s *framework.Session,
	provesEmpty bool) (framework.Event, error) {
	_, w, err := s.WatchExists(ctx, f.dir)
	if !errors.Is(err, framework.ErrNoNode) {
		if err == nil {
			w.Stop()
		}
		return framework.Event{Kind: framework.NodeCreated}, err
	}
	if !f.takeList(nil, nil, provesEmpty) {
		w.Stop()
		return framework.Event{}, nil
	}
	return recipe.WaitForWatch(ctx, s, w)
}
