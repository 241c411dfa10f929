package election

import (
	"context"
	"errors"
	"iter"
	"maps"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Follow yields the leader, now and after each change, or nil while no candidate leads. The
// leaders come in order. Follow skips a leader that it has seen replaced, and does not repeat
// equal values. A slow reader skips to the latest leader: a gap in Candidate.Number shows skipped
// terms. When a leader updates its metadata, Follow yields it again.
//
// Follow yields a leader once it has recorded its term. It yields a leader without a record, such
// as Java's, after half a second as the first in line, with the number 0.
//
// Follow survives lost connections and sessions, and ends silently when ctx ends. It yields any
// other error last, with a nil candidate; the error wraps framework.ErrClosed, framework.ErrNoAuth,
// framework.ErrInvalid, framework.ErrForeign, framework.ErrBadRecord or framework.ErrNewer.
//
// An observer watches only the leader's node and the term's record, or the directory while there is
// no leader.
func (e *Election) Follow(ctx context.Context) iter.Seq2[*Candidate, error] {
	return func(yield func(*Candidate, error) bool) {
		o := &leaderObserver{election: e, yield: yield}
		err := e.err
		if err == nil {
			err = recipe.OnSession(ctx, e.client, func(s *framework.Session) error { return o.observeSession(ctx, s) })
		}
		if err = failure.LoopEnd(ctx, "observe", e.path, err); err != nil {
			yield(nil, err)
		}
	}
}

// recordedWithin is how long a leader may take to record its term. After that, Follow takes it for
// a leader without a record.
const recordedWithin = 500 * time.Millisecond

// leaderObserver is one loop over the leaders.
type leaderObserver struct {
	election *Election
	yield    func(*Candidate, error) bool

	began bool
	last  Candidate
}

// observeSession observes until the session is lost. It begins with a sync: the session's server
// may lag behind the former session's server.
func (o *leaderObserver) observeSession(ctx context.Context, s *framework.Session) error {
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
func (o *leaderObserver) waitForCandidate(ctx context.Context, s *framework.Session) error {
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

// followLeader follows one leader until its node is gone. The node exists at the first read, and
// all nodes before it had gone by then: so its owner is the leader.
func (o *leaderObserver) followLeader(ctx context.Context, s *framework.Session, node string) error {
	id, stat, end, err := s.WatchData(ctx, node)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer end.Stop()
	leader := Candidate{ID: string(id), Token: stat.Czxid, Node: node, Session: stat.EphemeralOwner}
	grace := time.NewTimer(recordedWithin)
	defer grace.Stop()
	for known := false; ; {
		changed, recorded, err := o.readTerm(ctx, s, &leader)
		if err != nil {
			return err
		}
		if recorded || known {
			grace.Stop()
			if err := o.yieldIfChanged(leader); err != nil {
				changed.Stop()
				return err
			}
		}
		select {
		case <-changed.C():
			continue
		case <-grace.C: // behind a sync, a read shows the leader's record if there is one
			changed.Stop()
			if err := s.Sync(ctx, node); err != nil {
				return err
			}
			known = true
			continue
		case <-end.C():
		case <-ctx.Done():
			err = failure.Ended(ctx)
		case <-s.Done():
			err = context.Cause(s.Context())
		}
		changed.Stop()
		return err
	}
}

// readTerm reads and watches the term's record. It reports whether the record is this leader's.
func (o *leaderObserver) readTerm(ctx context.Context, s *framework.Session,
	leader *Candidate) (*framework.Watch, bool, error) {
	data, changed, err := watchData(ctx, s, o.election.termPath())
	if err != nil || len(data) == 0 {
		return changed, false, err
	}
	r, err := decodeTerm(data)
	if err != nil {
		changed.Stop()
		return nil, false, failure.Wrap("term", o.election.termPath(), err)
	}
	return changed, leader.addTermRecord(r), nil
}

// yieldIfChanged yields the leader unless it is the one yielded last. Its Node is empty if there is
// no leader.
func (o *leaderObserver) yieldIfChanged(leader Candidate) error {
	if o.began && sameLeader(o.last, leader) {
		return nil
	}
	o.began, o.last = true, leader
	yielded := &leader
	if leader.Node == "" {
		yielded = nil
	}
	leader.Metadata = maps.Clone(leader.Metadata) // the reader may change what it gets
	if !o.yield(yielded, nil) {
		return failure.ErrLoopLeft
	}
	return nil
}

func sameLeader(a, b Candidate) bool {
	return a.Node == b.Node && a.Token == b.Token && a.Number == b.Number && maps.Equal(a.Metadata, b.Metadata)
}
