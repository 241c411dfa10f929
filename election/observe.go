package election

import (
	"context"
	"errors"
	"iter"

	"github.com/lockstep-go/lockstep/framework"
)

// Observe yields who leads, now and after each change: nil when nobody does. The leaders come in order;
// one that a newer look has replaced is never reported, and equal values are not repeated. A slow reader
// skips to the latest. It survives lost connections and sessions, and ends silently when ctx ends.
// Anything else that ends it is yielded last, with a nil candidate: an error that wraps
// framework.ErrClosed, framework.ErrNoAuth, framework.ErrInvalidPath or locks.ErrKindMixed.
//
// An observer watches the leader's node only, or the directory while there is no leader.
func (e *Election) Observe(ctx context.Context) iter.Seq2[*Candidate, error] {
	return func(yield func(*Candidate, error) bool) {
		o := &observer{election: e, yield: yield}
		err := e.err
		for err == nil {
			if err = o.session(ctx); errors.Is(err, framework.ErrSessionLost) && ctx.Err() == nil {
				err = nil
			}
		}
		if ctx.Err() == nil && !errors.Is(err, errNotWanted) {
			yield(nil, framework.Wrap("observe", e.path, err))
		}
	}
}

// errNotWanted says that the loop over the leaders was left.
var errNotWanted = errors.New("nobody listens any more")

// observer is one loop over the leaders.
type observer struct {
	election *Election
	yield    func(*Candidate, error) bool

	began bool
	last  *Candidate
}

// session observes until the present session is lost. It begins with a sync: the new session's server
// may not know yet what the former one's has shown.
func (o *observer) session(ctx context.Context) error {
	s, err := o.election.client.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Sync(ctx, o.election.path); err != nil {
		return err
	}
	for {
		leader, w, err := o.look(ctx, s)
		if err != nil {
			return err
		}
		if w == nil { // something has changed while we looked
			continue
		}
		if err := o.tell(leader); err != nil {
			w.Stop()
			return err
		}
		if err := wait(ctx, s, w); err != nil {
			return err
		}
	}
}

// tell yields the leader if it is not the one told last.
func (o *observer) tell(leader *Candidate) error {
	if o.began && equal(o.last, leader) {
		return nil
	}
	o.began, o.last = true, leader
	if leader != nil { // the reader may keep and change what it gets
		copied := *leader
		leader = &copied
	}
	if !o.yield(leader, nil) {
		return errNotWanted
	}
	return nil
}

func equal(a, b *Candidate) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// look returns the leader, or nil, and a watch for its end. Without a watch, look again.
func (o *observer) look(ctx context.Context, s *framework.Session) (*Candidate, *framework.Watch, error) {
	names, _, err := s.Children(ctx, o.election.path)
	if errors.Is(err, framework.ErrNoNode) {
		return o.noDirectory(ctx, s)
	}
	if err != nil {
		return nil, nil, err
	}
	first, err := o.election.line.First(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	if first == nil {
		return o.nobody(ctx, s)
	}
	return o.leads(ctx, s, first.Node)
}

// leads watches the leader's node. It exists at that moment, and whoever came before it had gone
// already: it is the leader.
func (o *observer) leads(ctx context.Context, s *framework.Session, node string) (*Candidate, *framework.Watch, error) {
	id, st, w, err := s.WatchData(ctx, node)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return &Candidate{ID: string(id), Token: st.Czxid, Node: node, Session: st.EphemeralOwner}, w, nil
}

// nobody watches a directory without candidates.
func (o *observer) nobody(ctx context.Context, s *framework.Session) (*Candidate, *framework.Watch, error) {
	names, _, w, err := s.WatchChildren(ctx, o.election.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	first, err := o.election.line.First(ctx, names)
	if err != nil || first != nil {
		w.Stop()
		return nil, nil, err
	}
	return nil, w, nil
}

// noDirectory watches for the directory.
func (o *observer) noDirectory(ctx context.Context, s *framework.Session) (*Candidate, *framework.Watch, error) {
	_, w, err := s.WatchExists(ctx, o.election.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil, w, nil
	case err != nil:
		return nil, nil, err
	}
	w.Stop()
	return nil, nil, nil
}

// wait waits until the watch tells of something.
func wait(ctx context.Context, s *framework.Session, w *framework.Watch) error {
	defer w.Stop()
	select {
	case <-w.C():
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-s.Done():
		return context.Cause(s.Context())
	}
}
