package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// preferredWatch watches for candidates of a higher priority, and hands the term to one that has
// waited for its stable period, after the term's shortest time. It hands the term at once to a
// candidate that a request names.
type preferredWatch struct {
	id          string        // the leader's
	waiting     *waitingGroup // the waiting candidates
	priority    int           // of the leader
	earliest    time.Time     // the end of the term's shortest time
	listWaiting func(context.Context) ([]waitline.Entry, error)
	handTo      func(*termSuccessor, error) error // ends the term with this cause

	seen map[string]*preferredCandidate // by name
}

// preferredCandidate is a candidate of a higher priority, or one that a request names.
type preferredCandidate struct {
	waitingCandidate
	priority  int
	due       time.Time // when it may take over
	requested bool      // it comes from a request for a transfer
}

// matchesEntry reports whether an entry of the line is the candidate.
func (p *preferredCandidate) matchesEntry(c waitline.Entry) bool {
	return (p.requested || c.Session == p.session) && string(c.Data) == p.id
}

func (p *preferredCandidate) handoverCause() error {
	if p.requested {
		return fmt.Errorf("%w: to %q, as was requested", ErrTransferred, p.id)
	}
	return fmt.Errorf("%w: to %q, of priority %d", ErrTransferred, p.id, p.priority)
}

// watchUntilEnd watches until ctx or the session ends, or a request fails.
func (w *preferredWatch) watchUntilEnd(ctx context.Context, s *framework.Session) error {
	for {
		names, changed, err := watchNames(ctx, s, w.waiting.path)
		if err != nil {
			return err
		}
		if err = w.updateList(ctx, s, names); err == nil {
			err = w.waitForChangeOrDue(ctx, s, changed)
		}
		changed.Stop()
		if err != nil {
			return err
		}
	}
}

// updateList reads the preferred candidates that have come, and forgets those that have gone. It
// skips nodes that it cannot read.
func (w *preferredWatch) updateList(ctx context.Context, s *framework.Session, names []string) error {
	w.waiting.forgetLoggedExcept(names)
	now := map[string]*preferredCandidate{}
	for _, name := range names {
		if priorityOf(name) <= w.priority && !isRequest(name) {
			continue
		}
		p := w.seen[name]
		if p == nil {
			m, r, err := w.waiting.readRecord(ctx, s, name)
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if w.waiting.skipsUnreadable(name, err) {
				continue
			}
			if err != nil {
				return err
			}
			p = w.newPreferred(name, m, r)
		}
		if p.requested && p.id == w.id { // the requested candidate leads already
			continue
		}
		now[name] = p
	}
	w.seen = now
	return nil
}

func (w *preferredWatch) newPreferred(name string, m waitingCandidate, r waitingRecord) *preferredCandidate {
	if isRequest(name) {
		return &preferredCandidate{waitingCandidate: m, priority: MaxPriority + 1, due: time.Now(), requested: true}
	}
	p := &preferredCandidate{waitingCandidate: m, priority: priorityOf(name), due: time.Now().Add(r.stableTime())}
	if p.due.Before(w.earliest) {
		p.due = w.earliest
	}
	return p
}

// retryHandOver is the mean pause after a preferred candidate was due but not in line. The pauses
// are random, so that the leaders of many elections do not list their lines at the same time, again
// and again.
const retryHandOver = time.Second

// waitForChangeOrDue waits for a change of the list, and hands the term over when a candidate is
// due.
func (w *preferredWatch) waitForChangeOrDue(ctx context.Context, s *framework.Session, changed *framework.Watch) error {
	for {
		due, wait := w.dueCandidates(time.Now())
		if len(due) > 0 {
			if err := w.handToFirstInLine(ctx, due); err != nil {
				return err
			}
			wait = min(wait, recipe.Spread(retryHandOver)) // these candidates are not in line yet, or have left it
		}
		from := recipe.Sources{Watch: changed}
		if len(w.seen) > 0 {
			from.Timer = time.After(wait)
		}
		source, _, err := recipe.WaitForFirst(ctx, s.Context(), from)
		if err != nil || source == recipe.FromWatch {
			return err
		}
	}
}

// dueCandidates returns the candidates that may take over, the most preferred first, and the time
// until the next one is due.
func (w *preferredWatch) dueCandidates(now time.Time) (due []*preferredCandidate, wait time.Duration) {
	wait = math.MaxInt64
	for _, p := range w.seen {
		if p.due.After(now) {
			wait = min(wait, p.due.Sub(now))
		} else {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(p, q *preferredCandidate) int {
		return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.order, q.order))
	})
	return due, wait
}

// handToFirstInLine ends the term in favour of the most preferred candidate that is in line. A node
// below ~waiting alone does not count: its process may hang before it joins, and must not keep the
// others out.
func (w *preferredWatch) handToFirstInLine(ctx context.Context, due []*preferredCandidate) error {
	line, err := w.listWaiting(ctx)
	if err != nil {
		return err
	}
	for _, p := range due {
		s := chooseSuccessor(line, p.matchesEntry)
		if s != nil {
			return w.handTo(s, p.handoverCause())
		}
	}
	return nil
}
