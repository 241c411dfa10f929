package election

import (
	"context"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Observe yields who leads, now and after each change: nil when nobody does. The leaders come in order;
// one that a newer look has replaced is never reported, and equal values are not repeated. A slow reader
// skips to the latest: a gap in Candidate.Number shows that terms were skipped. When a leader updates its
// metadata, it is yielded again.
//
// A winner is yielded once it has counted its term. One that counts none, such as Java's, is yielded when it
// has been the first in line for half a second, with the number 0.
//
// It survives lost connections and sessions, and ends silently when ctx ends. Anything else that ends it is
// yielded last, with a nil candidate: an error that wraps framework.ErrClosed, framework.ErrNoAuth,
// framework.ErrInvalidPath, locks.ErrKindMixed, ErrBadRecord or ErrNewerRecord.
//
// An observer watches the leader's node and the term's record only, or the directory while there is no leader.
func (e *Election) Observe(ctx context.Context) iter.Seq2[*Candidate, error] {
	return func(yield func(*Candidate, error) bool) {
		o := &observer{election: e, yield: yield}
		err := e.err
		if err == nil {
			err = recipe.OnSession(ctx, e.client, func(s *framework.Session) error { return o.observeSession(ctx, s) })
		}
		if ctx.Err() == nil && !errors.Is(err, errLoopLeft) {
			yield(nil, framework.Wrap("observe", e.path, err))
		}
	}
}

// countedWithin is how long a winner may take to count its term before it is taken for one that does not.
const countedWithin = 500 * time.Millisecond

// observer is one loop over the leaders.
type observer struct {
	election *Election
	yield    func(*Candidate, error) bool

	began bool
	last  Candidate
}

// observeSession observes until the session is lost. It begins with a sync: the session's server may not know
// yet what the former one's has shown.
func (o *observer) observeSession(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, o.election.path); err != nil {
		return err
	}
	for {
		names, _, err := s.Children(ctx, o.election.path)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		first, err := o.election.line.First(ctx, o.election.client, names)
		switch {
		case err != nil:
			return err
		case first != nil:
			err = o.followLeader(ctx, s, first.Node)
		default:
			err = o.waitForCandidate(ctx, s)
		}
		if err != nil {
			return err
		}
	}
}

// waitForCandidate waits while there are no candidates.
func (o *observer) waitForCandidate(ctx context.Context, s *framework.Session) error {
	names, w, err := watchNames(ctx, s, o.election.path)
	if err != nil {
		return err
	}
	first, err := o.election.line.First(ctx, o.election.client, names)
	if err == nil && first == nil {
		err = o.yieldIfChanged(Candidate{})
	}
	if err != nil || first != nil {
		w.Stop()
		return err
	}
	_, err = recipe.WaitForWatch(ctx, s, w)
	return err
}

// followLeader follows one leader until it is gone. Its node exists when it is first looked at, and whoever came
// before it had gone already: it is the leader.
func (o *observer) followLeader(ctx context.Context, s *framework.Session, node string) error {
	id, st, end, err := s.WatchData(ctx, node)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer end.Stop()
	leader := Candidate{ID: string(id), Token: st.Czxid, Node: node, Session: st.EphemeralOwner}
	grace := time.NewTimer(countedWithin)
	defer grace.Stop()
	for known := false; ; {
		changed, counted, err := o.readTerm(ctx, s, &leader)
		if err != nil {
			return err
		}
		if counted || known {
			if err := o.yieldIfChanged(leader); err != nil {
				changed.Stop()
				return err
			}
		}
		select {
		case <-changed.C():
			continue
		case <-grace.C: // whatever has been counted by now is to be seen
			changed.Stop()
			if err := s.Sync(ctx, node); err != nil {
				return err
			}
			known = true
			continue
		case <-end.C():
		case <-ctx.Done():
			err = framework.Ended(ctx)
		case <-s.Done():
			err = context.Cause(s.Context())
		}
		changed.Stop()
		return err
	}
}

// readTerm reads the term's record and watches it, and reports whether it is the leader's.
func (o *observer) readTerm(ctx context.Context, s *framework.Session, leader *Candidate) (*framework.Watch, bool, error) {
	data, changed, err := watchData(ctx, s, o.election.termPath())
	if err != nil || len(data) == 0 {
		return changed, false, err
	}
	r, err := decodeTerm(data)
	if err != nil {
		changed.Stop()
		return nil, false, framework.Wrap("term", o.election.termPath(), err)
	}
	return changed, leader.addTermRecord(r), nil
}

// yieldIfChanged yields the leader, whose Node is empty if nobody leads, if it is not the one told last.
func (o *observer) yieldIfChanged(leader Candidate) error {
	if o.began && sameLeader(o.last, leader) {
		return nil
	}
	o.began, o.last = true, leader
	told := &leader
	if leader.Node == "" {
		told = nil
	}
	leader.Metadata = leader.Metadata.clone() // the reader may change what it gets
	if !o.yield(told, nil) {
		return errLoopLeft
	}
	return nil
}

func sameLeader(a, b Candidate) bool {
	return a.Node == b.Node && a.Token == b.Token && a.Number == b.Number && maps.Equal(a.Metadata, b.Metadata)
}
