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
	"github.com/lockstep-go/lockstep/internal/survey"
)

const (
	maxFound     = 2000 // findings of one scan
	maxText      = 500  // bytes of a finding's text
	maxInMetrics = 20   // paths that a metric names
)

// findingKey identifies a finding. A scan has one finding of each problem at each path.
type findingKey struct {
	problem Problem
	path    string
}

func (f Finding) key() findingKey { return findingKey{f.Problem, f.Path} }

// scanResult is what one scan has seen.
type scanResult struct {
	at        time.Time
	without   []Problem
	findings  map[findingKey]Finding
	undecided map[findingKey]bool // problems that need more scans: their open findings stay as they are
	unread    []unreadPath
	overflow  bool // the scan found more than maxFound problems; the rest is not in findings

	survey  *survey.Survey
	waiting []lockWaiters // the locks with waiters, those with the most first
	items   []queueItems  // the longest queues first
}

// unreadPath is a path at and below which a scan has not read an area.
type unreadPath struct {
	area survey.Part
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

func newScanResult(at time.Time, without []Problem, seen *survey.Survey) *scanResult {
	return &scanResult{at: at, without: without, findings: map[findingKey]Finding{}, undecided: map[findingKey]bool{},
		survey: seen}
}

// addFinding adds a finding with this text, unless its problem is one of WithoutProblems or the
// scan has the finding already. It replaces bytes that are not UTF-8, since the record is JSON.
func (l *scanResult) addFinding(f Finding, format string, args ...any) {
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

// addUnread adds a finding for the path that the error says could not be read; path stands for it
// if the error names none.
func (l *scanResult) addUnread(area survey.Part, path string, err error) {
	problem := ProblemUnread
	var op *framework.OpError
	if errors.As(err, &op) {
		path = op.Path
	} else if errors.Is(err, framework.ErrTooLarge) {
		problem = ProblemLeftOut
	}
	l.unread = append(l.unread, unreadPath{area, path})
	l.addFinding(Finding{Problem: problem, Path: path}, "%v", err)
}

// addUnreadOf is addUnread with the joined errors of a read behind the survey. It returns an error
// if the whole scan has failed.
func (l *scanResult) addUnreadOf(ctx context.Context, area survey.Part, path string, err error) error {
	if err == nil {
		return nil
	}
	for _, e := range failure.SplitJoined(err) {
		if ends := survey.EndedBy(ctx, e); ends != nil {
			return ends
		}
		l.addUnread(area, path, e)
	}
	return nil
}

// isUndecided reports whether a finding that the scan has not seen may persist: the scan has not
// read its path, found too much, or needs more scans to decide.
func (l *scanResult) isUndecided(k findingKey) bool {
	area := areaOf(k.problem)
	return l.overflow || l.undecided[k] || l.isUnread(area, k.path) ||
		(k.problem == ProblemSession || area == survey.Runs) && l.isUnread(area, "")
}

// isUnread reports whether the scan has not read a path in an area, or with "" any path.
func (l *scanResult) isUnread(area survey.Part, path string) bool {
	return slices.ContainsFunc(l.unread, func(u unreadPath) bool {
		return u.area&area != 0 &&
			(u.path == "/" || path == "" || path == u.path || strings.HasPrefix(path, u.path+"/"))
	})
}

// sortedFindings returns the findings in the order of Problems, and then of paths.
func (l *scanResult) sortedFindings() []Finding {
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
