package election

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// Roster is who is there, and what has changed since the one told before.
type Roster struct {
	// Members are all of them, in the order in which they have joined.
	Members []Member
	// Joined and Left are those who were not there before, and those who are not any more, in that order.
	// Of the first roster, all have joined.
	Joined, Left []Member
}

// Observe yields who is there, now and after each change. Changes come in order; a slow reader skips to the
// latest, and then who was there in between only is never shown. It survives lost connections and
// sessions, and ends silently when ctx ends. Anything else that ends it is yielded last: an error that wraps
// framework.ErrClosed, framework.ErrNoAuth or ErrNewerRecord.
//
// An observer watches the directory, and reads each member once.
func (m *Group) Observe(ctx context.Context) iter.Seq2[*Roster, error] {
	return func(yield func(*Roster, error) bool) {
		o := &groupObserver{members: m, yield: yield, known: map[string]Member{}}
		err := m.err
		if err == nil {
			err = onSessions(ctx, m.client, o.observeSession)
		}
		if ctx.Err() == nil && !errors.Is(err, errLoopLeft) {
			yield(nil, framework.Wrap("observe", m.path, err))
		}
	}
}

// errLoopLeft says that the loop over what is observed was left.
var errLoopLeft = errors.New("nobody listens any more")

// groupObserver is one loop over a group's rosters.
type groupObserver struct {
	members *Group
	yield   func(*Roster, error) bool
	began   bool
	known   map[string]Member // by node, as told last
}

// observeSession observes until the session is lost. It begins with a sync: the session's server may not know
// yet what the former one's has shown.
func (o *groupObserver) observeSession(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, o.members.path); err != nil {
		return err
	}
	for {
		names, w, err := watchNames(ctx, s, o.members.path)
		if err != nil {
			return err
		}
		if err := o.yieldChanges(ctx, s, names); err != nil {
			w.Stop()
			return err
		}
		if err := waitForWatch(ctx, s, w); err != nil {
			return err
		}
	}
}

// yieldChanges finds out who has joined and left, and yields that.
func (o *groupObserver) yieldChanges(ctx context.Context, s *framework.Session, names []string) error {
	r := &Roster{}
	now := make(map[string]Member, len(names))
	for _, name := range names {
		node := framework.Join(o.members.path, name)
		one, before := o.known[node]
		if !before {
			var err error
			one, _, err = o.members.readMember(ctx, s, name)
			if errors.Is(err, framework.ErrNoNode) { // the watch will tell
				continue
			}
			if err != nil {
				return err
			}
			r.Joined = append(r.Joined, one)
		}
		now[node] = one
		r.Members = append(r.Members, one)
	}
	for node, one := range o.known {
		if _, still := now[node]; !still {
			r.Left = append(r.Left, one)
		}
	}
	if o.began && len(r.Joined) == 0 && len(r.Left) == 0 {
		return nil
	}
	for _, some := range [][]Member{r.Members, r.Joined, r.Left} {
		compareMembers(some)
	}
	o.began, o.known = true, now
	if !o.yield(r.deepCopy(), nil) {
		return errLoopLeft
	}
	return nil
}

// deepCopy is a copy whose metadata the reader may change.
func (r *Roster) deepCopy() *Roster {
	for _, some := range []*[]Member{&r.Members, &r.Joined, &r.Left} {
		*some = slices.Clone(*some)
		for i := range *some {
			(*some)[i].Metadata = (*some)[i].Metadata.clone()
		}
	}
	return r
}
