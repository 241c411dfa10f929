package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// waitingName is what the name of a waiting candidate's node ends with: its priority, so that a list
// alone tells the leader whether anybody is preferred.
func waitingName(priority int) string { return "p" + strconv.Itoa(priority) }

// priorityOf reads a name of waitingName's; 0 if it is none.
func priorityOf(name string) int {
	_, digits, ok := cutAtLast(name, "-p")
	if !ok {
		return 0
	}
	p, err := strconv.Atoi(digits)
	if err != nil || p < 0 || p > MaxPriority {
		return 0
	}
	return p
}

func cutAtLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// watchPreferred hands the term to a candidate of a higher priority once it has been there for its stable
// period and the term for its least time.
func (t *Term) watchPreferred() {
	w := &preferredCandidates{term: t, seen: map[string]*preferred{}}
	back := t.election.client.Backoff()
	for t.Context().Err() == nil {
		err := w.watchUntil(t.Context())
		if t.Context().Err() != nil {
			return
		}
		t.election.client.Logger().Warn("preferred candidates cannot be seen to", "path", t.election.path, "error", err)
		_ = back.Pause(t.Context()) // the loop sees it
	}
}

// preferredCandidates are the candidates that a leader knows of whom the term is to be handed to.
type preferredCandidates struct {
	term *Term
	seen map[string]*preferred // by name
}

// preferred is one of them.
type preferred struct {
	Member
	priority int
	due      time.Time // when it is to take over
}

// watchUntil sees to preferred candidates until the context or the session has ended, or something fails.
func (w *preferredCandidates) watchUntil(ctx context.Context) error {
	s, err := w.term.session(ctx)
	if err != nil {
		return err
	}
	for {
		names, changed, err := watchNames(ctx, s, w.term.election.waiting.path)
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

// updateList notes who has come and gone.
func (w *preferredCandidates) updateList(ctx context.Context, s *framework.Session, names []string) error {
	now := map[string]*preferred{}
	for _, name := range names {
		if priorityOf(name) <= w.term.election.priority {
			continue
		}
		p, err := w.readCandidate(ctx, s, name)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		now[name] = p
	}
	w.seen = now
	return nil
}

// readCandidate reads a candidate that was not there before.
func (w *preferredCandidates) readCandidate(ctx context.Context, s *framework.Session, name string) (*preferred, error) {
	if p := w.seen[name]; p != nil {
		return p, nil
	}
	m, r, err := w.term.election.waiting.readMember(ctx, s, name)
	if err != nil {
		return nil, err
	}
	due := time.Now().Add(r.Stable)
	if least := w.term.began.Add(w.term.election.minTerm); due.Before(least) {
		due = least
	}
	return &preferred{m, priorityOf(name), due}, nil
}

// waitForChangeOrDue waits for a change, and hands the term over meanwhile if somebody's time has come.
func (w *preferredCandidates) waitForChangeOrDue(ctx context.Context, s *framework.Session, changed *framework.Watch) error {
	for {
		due, wait := w.dueCandidates(time.Now())
		if len(due) > 0 {
			if err := w.handToFirstInLine(ctx, due); err != nil {
				return err
			}
			wait = min(wait, retryHandOver) // none of them is in line yet, or any more
		}
		var timer <-chan time.Time
		if len(w.seen) > 0 {
			timer = time.After(wait)
		}
		select {
		case <-changed.C():
			return nil
		case <-timer:
		case <-ctx.Done():
			return framework.Ended(ctx)
		case <-s.Done():
			return context.Cause(s.Context())
		}
	}
}

// retryHandOver is the pause after no preferred candidate was found in line.
const retryHandOver = time.Second

// dueCandidates returns the candidates whose time has come, the most preferred first, and the time until the next one's comes.
func (w *preferredCandidates) dueCandidates(now time.Time) (due []*preferred, wait time.Duration) {
	wait = math.MaxInt64
	for _, p := range w.seen {
		if p.due.After(now) {
			wait = min(wait, p.due.Sub(now))
		} else {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(p, q *preferred) int {
		return cmp.Or(cmp.Compare(q.priority, p.priority), cmp.Compare(p.order, q.order))
	})
	return due, wait
}

// handToFirstInLine ends the term in favour of the most preferred of the candidates that is in line. A node below ~waiting
// alone does not count: its process may hang between the two, and must not keep the others out.
func (w *preferredCandidates) handToFirstInLine(ctx context.Context, due []*preferred) error {
	line, err := w.term.listWaiting(ctx)
	if err != nil {
		return err
	}
	for _, p := range due {
		s := chooseSuccessor(line, func(c Candidate) bool { return c.Session == p.Session && c.ID == p.ID })
		if s != nil {
			_, err := w.term.endInFavourOf(s, fmt.Errorf("%w: to %q, of priority %d", ErrTransferred, p.ID, p.priority))
			return err
		}
	}
	return nil
}
