package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

const (
	maxFound     = 2000 // findings of one look
	maxText      = 500  // bytes of a finding's text
	maxInMetrics = 20   // paths that a metric names
)

// findingKey identifies a finding. A look has one finding of each problem at each path.
type findingKey struct {
	problem Problem
	path    string
}

func (f Finding) key() findingKey { return findingKey{f.Problem, f.Path} }

// lookResult is what one look has seen.
type lookResult struct {
	at        time.Time
	without   []Problem
	findings  map[findingKey]Finding
	undecided map[findingKey]bool // problems that need more looks: their open findings stay as they are
	unread    []unreadPath
	overflow  bool // the look found more than maxFound problems; the rest is not in findings

	locks   []*locks.Report // what was seen
	jobs    []scheduler.JobReport
	queues  []queue.Report
	waiting []lockWaiters // the locks with waiters, those with the most first
	items   []queueItems  // the longest queues first
}

// unreadPath is a path at and below which a look has not read an area.
type unreadPath struct {
	area lookArea
	path string
}

// lockWaiters is how many contenders wait for a lock.
type lockWaiters struct {
	path    string
	waiters int
}

// queueItems is how many items a queue has, the age of its oldest, the highest number of attempts,
// and for how long a consumer has had an item.
type queueItems struct {
	path                 string
	items, delayed, dead int
	oldest               time.Duration
	attempts             int
	held                 time.Duration
}

func newLookResult(at time.Time, without []Problem) *lookResult {
	return &lookResult{at: at, without: without, findings: map[findingKey]Finding{}, undecided: map[findingKey]bool{}}
}

// addFinding adds a finding with this text, unless its problem is one of WithoutProblems or the
// look has the finding already. It replaces bytes that are not UTF-8, since the record is JSON.
func (l *lookResult) addFinding(f Finding, format string, args ...any) {
	f.Text = stored.Shorten(fmt.Sprintf(format, args...), maxText)
	f.Path, f.Node = stored.Text(f.Path), stored.Text(f.Node)
	f.Since = reportjson.Time(f.Since)
	switch _, known := l.findings[f.key()]; {
	case known, slices.Contains(l.without, f.Problem):
	case len(l.findings) == maxFound:
		l.overflow = true
	default:
		l.findings[f.key()] = f
	}
}

// addUnread adds a finding for each path that err, which may be several joined errors, says could
// not be read; path stands for those that name none. It returns an error if the whole look has
// failed: ctx has ended, or later reads would fail, too.
func (l *lookResult) addUnread(ctx context.Context, area lookArea, path string, err error) error {
	for _, e := range failure.SplitJoined(err) {
		var op *framework.OpError
		switch {
		case ctx.Err() != nil:
			return failure.Ended(ctx)
		case failure.IsTransient(e), errors.Is(e, framework.ErrClosed), errors.Is(e, framework.ErrAuthFailed),
			errors.Is(e, framework.ErrInvalidPath):
			return e
		case errors.As(e, &op):
			l.unread = append(l.unread, unreadPath{area, op.Path})
			l.addFinding(Finding{Problem: ProblemUnread, Path: op.Path}, "%v", e)
		case errors.Is(e, framework.ErrTooLarge):
			l.unread = append(l.unread, unreadPath{area, path})
			l.addFinding(Finding{Problem: ProblemLeftOut, Path: path}, "%v", e)
		default:
			l.unread = append(l.unread, unreadPath{area, path})
			l.addFinding(Finding{Problem: ProblemUnread, Path: path}, "%v", e)
		}
	}
	return nil
}

// isUndecided reports whether a finding that the look has not seen may persist: the look has not
// read its path, found too much, or needs more looks to decide.
func (l *lookResult) isUndecided(k findingKey) bool {
	return l.overflow || l.undecided[k] || l.isUnread(areaOf(k.problem), k.path) ||
		k.problem == ProblemSession && l.isUnread(areaOf(k.problem), "")
}

// isUnread reports whether the look has not read a path in an area, or with "" any path.
func (l *lookResult) isUnread(area lookArea, path string) bool {
	return slices.ContainsFunc(l.unread, func(u unreadPath) bool {
		return u.area == area && (u.path == "/" || path == "" || path == u.path || strings.HasPrefix(path, u.path+"/"))
	})
}

// sortedFindings returns the findings in the order of Problems, and then of paths.
func (l *lookResult) sortedFindings() []Finding {
	all := make([]Finding, 0, len(l.findings))
	for _, f := range l.findings {
		all = append(all, f)
	}
	slices.SortFunc(all, compareFindings)
	return all
}

func compareFindings(a, b Finding) int {
	if byProblem := slices.Index(problems, a.Problem) - slices.Index(problems, b.Problem); byProblem != 0 {
		return byProblem
	}
	return strings.Compare(a.Path, b.Path)
}
