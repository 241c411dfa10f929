package election

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Roster is the members of a group, and what has changed since the roster yielded before.
type Roster struct {
	// Members are all members, in the order of joining.
	Members []Member
	// Joined are the members that are new, Left those that are gone, in that order. In the first roster, all have joined.
	Joined, Left []Member
}

// Observe yields the members, now and after each change. Changes come in order; a slow reader skips to the latest roster, and does not see
// members that joined and left in between. Observe survives lost connections and sessions, and ends silently when ctx ends. Any other
// error that ends it is yielded last: it wraps framework.ErrClosed, framework.ErrNoAuth or ErrNewerRecord.
//
// An observer watches the directory, and reads each member once.
func (g *Group) Observe(ctx context.Context) iter.Seq2[*Roster, error] {
	return func(yield func(*Roster, error) bool) {
		o := &groupObserver{group: g, yield: yield, known: map[string]Member{}}
		err := g.err
		if err == nil {
			err = recipe.OnSession(ctx, g.client, func(s *framework.Session) error { return o.observeSession(ctx, s) })
		}
		if ctx.Err() == nil && !errors.Is(err, errLoopLeft) {
			yield(nil, framework.Wrap("observe", g.path, err))
		}
	}
}

// errLoopLeft says that the caller has left the loop over what is observed.
var errLoopLeft = errors.New("the loop was left")

// groupObserver is one loop over a group's rosters.
type groupObserver struct {
	group *Group
	yield func(*Roster, error) bool
	began bool
	known map[string]Member // by node, as yielded last
}

// observeSession observes until the session is lost. It begins with a sync: the session's server may not know yet what the former session's
// server has shown.
func (o *groupObserver) observeSession(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, o.group.path); err != nil {
		return err
	}
	for {
		names, w, err := watchNames(ctx, s, o.group.path)
		if err != nil {
			return err
		}
		if err := o.yieldChanges(ctx, s, names); err != nil {
			w.Stop()
			return err
		}
		if _, err := recipe.WaitForWatch(ctx, s, w); err != nil {
			return err
		}
	}
}

// yieldChanges yields a roster if members have joined or left.
func (o *groupObserver) yieldChanges(ctx context.Context, s *framework.Session, names []string) error {
	r := &Roster{}
	now := make(map[string]Member, len(names))
	for _, name := range names {
		node := framework.Join(o.group.path, name)
		m, before := o.known[node]
		if !before {
			var err error
			m, _, err = o.group.readMember(ctx, s, name)
			if errors.Is(err, framework.ErrNoNode) { // the watch fires
				continue
			}
			if err != nil {
				return err
			}
			r.Joined = append(r.Joined, m)
		}
		now[node] = m
		r.Members = append(r.Members, m)
	}
	for node, m := range o.known {
		if _, still := now[node]; !still {
			r.Left = append(r.Left, m)
		}
	}
	if o.began && len(r.Joined) == 0 && len(r.Left) == 0 {
		return nil
	}
	for _, list := range [][]Member{r.Members, r.Joined, r.Left} {
		sortMembers(list)
	}
	o.began, o.known = true, now
	if !o.yield(r.deepCopy(), nil) {
		return errLoopLeft
	}
	return nil
}

// deepCopy is a copy whose metadata the reader may change.
func (r *Roster) deepCopy() *Roster {
	for _, list := range []*[]Member{&r.Members, &r.Joined, &r.Left} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Metadata = (*list)[i].Metadata.clone()
		}
	}
	return r
}
