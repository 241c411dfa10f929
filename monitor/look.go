package monitor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

const (
	mostFound = 2000 // findings of one look
	maxText   = 500  // bytes of a finding's text
	ofMetrics = 20   // paths in metrics
)

// key tells a finding from others.
type key struct {
	problem Problem
	path    string
}

func (f Finding) key() key { return key{f.Problem, f.Path} }

// look is what one look has seen.
type look struct {
	at       time.Time
	without  []Problem
	findings map[key]Finding
	unknown  map[key]bool // what this look could not judge
	unread   []unread
	overflow bool // there were more findings

	locks, jobs, queues int
	waiting             []pathValue // locks by their waiters
	items               []queueItems
}

// unread is what was not read, at and below a path.
type unread struct {
	area area
	path string
}

type pathValue struct {
	path  string
	value int
}

// queueItems are the figures of a queue.
type queueItems struct {
	path                 string
	items, delayed, dead int
	oldest               time.Duration
}

func newLook(at time.Time, without []Problem) *look {
	return &look{at: at, without: without, findings: map[key]Finding{}, unknown: map[key]bool{}}
}

// add adds a finding. What is no UTF-8 is replaced, since the record is JSON.
func (l *look) add(f Finding, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	f.Path, f.Node, f.Text = validUTF8(f.Path), validUTF8(f.Node), validUTF8(text)
	if y := f.Since.Year(); y < 1 || y > 9999 { // JSON has no others
		f.Since = time.Time{}
	}
	switch _, known := l.findings[f.key()]; {
	case known, slices.Contains(l.without, f.Problem):
	case len(l.findings) == mostFound:
		l.overflow = true
	default:
		l.findings[f.key()] = f
	}
}

func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// addUnread makes a finding of what cannot be read beside what can. It returns errors that make the whole look void.
func (l *look) addUnread(ctx context.Context, in area, path string, err error) error {
	for _, e := range splitJoined(err) {
		var op *framework.OpError
		switch {
		case ctx.Err() != nil:
			return failure.Ended(ctx)
		case failure.IsTransient(e), errors.Is(e, framework.ErrClosed), errors.Is(e, framework.ErrAuthFailed), errors.Is(e, framework.ErrInvalidPath):
			return e
		case errors.As(e, &op):
			l.unread = append(l.unread, unread{in, op.Path})
			l.add(Finding{Problem: ProblemUnread, Path: op.Path}, "%v", e)
		case errors.Is(e, framework.ErrTooLarge):
			l.unread = append(l.unread, unread{in, path})
			l.add(Finding{Problem: ProblemLeftOut, Path: path}, "%v", e)
		default:
			l.unread = append(l.unread, unread{in, path})
			l.add(Finding{Problem: ProblemUnread, Path: path}, "%v", e)
		}
	}
	return nil
}

// splitJoined returns the errors that errors.Join has joined, also several times.
func splitJoined(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, splitJoined(e)...)
	}
	return all
}

// cannotTell reports whether the look says nothing about a finding that it has not seen.
func (l *look) cannotTell(k key) bool {
	return l.overflow || l.unknown[k] || slices.ContainsFunc(l.unread, func(u unread) bool {
		return u.area == areaOf(k.problem) && (u.path == "/" || k.path == u.path || strings.HasPrefix(k.path, u.path+"/") || k.problem == ProblemSession)
	})
}

// sorted are the findings by problem and path.
func (l *look) sorted() []Finding {
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

// inParallel calls f with the numbers below n, so many at once.
func inParallel(n, atOnce int, f func(i int)) {
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}
