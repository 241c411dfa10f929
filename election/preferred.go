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
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// waitingName is what the name of a waiting candidate's node ends with: its priority, so that a list alone tells the leader whether a
// candidate is preferred.
func waitingName(priority int) string { return "p" + strconv.Itoa(priority) }

// priorityOf reads the name of a waiting candidate's node; 0 for other names.
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

// preferredWatch watches for candidates of a higher priority, and hands the term to one that has waited for its stable period, after the
// term's shortest time.
type preferredWatch struct {
	waiting     *Group    // the waiting candidates
	priority    int       // of the leader
	earliest    time.Time // the end of the term's shortest time
	listWaiting func(context.Context) ([]waitline.Entry, error)
	handTo      func(*successor, error) error // ends the term with this cause

	seen map[string]*preferred // by name
}

// preferred is a candidate of a higher priority.
type preferred struct {
	Member
	priority int
	due      time.Time // when it may take over
}

// run watches until ctx or the session ends, or a request fails.
func (w *preferredWatch) run(ctx context.Context, s *framework.Session) error {
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

// updateList notes which preferred candidates there are now.
func (w *preferredWatch) updateList(ctx context.Context, s *framework.Session, names []string) error {
	now := map[string]*preferred{}
	for _, name := range names {
		if priorityOf(name) <= w.priority {
			continue
		}
		p := w.seen[name]
		if p == nil {
			m, r, err := w.waiting.readMember(ctx, s, name)
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			p = &preferred{m, priorityOf(name), time.Now().Add(r.stable())}
			if p.due.Before(w.earliest) {
				p.due = w.earliest
			}
		}
		now[name] = p
	}
	w.seen = now
	return nil
}

// retryHandOver is the pause after a preferred candidate was due but not in line.
const retryHandOver = time.Second

// waitForChangeOrDue waits for a change of the list, and hands the term over when a candidate is due.
func (w *preferredWatch) waitForChangeOrDue(ctx context.Context, s *framework.Session, changed *framework.Watch) error {
	for {
		due, wait := w.dueCandidates(time.Now())
		if len(due) > 0 {
			if err := w.handToFirstInLine(ctx, due); err != nil {
				return err
			}
			wait = min(wait, retryHandOver) // none of them is in line yet, or any more
		}
		from := recipe.Sources{Watch: changed}
		if len(w.seen) > 0 {
			from.Timer = time.After(wait)
		}
		source, _, err := recipe.WaitForFirst(ctx, s.Context(), from)
		if err != nil || source == recipe.Watch {
			return err
		}
	}
}

// dueCandidates returns the candidates that may take over, the most preferred first, and the time until the next one is due.
func (w *preferredWatch) dueCandidates(now time.Time) (due []*preferred, wait time.Duration) {
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

// handToFirstInLine ends the term in favour of the most preferred candidate that is in line. A node below ~waiting alone does not count: its
// process may hang before it joins, and must not keep the others out.
func (w *preferredWatch) handToFirstInLine(ctx context.Context, due []*preferred) error {
	line, err := w.listWaiting(ctx)
	if err != nil {
		return err
	}
	for _, p := range due {
		s := chooseSuccessor(line, func(c waitline.Entry) bool { return c.Session == p.Session && string(c.Data) == p.ID })
		if s != nil {
			return w.handTo(s, fmt.Errorf("%w: to %q, of priority %d", ErrTransferred, p.ID, p.priority))
		}
	}
	return nil
}
