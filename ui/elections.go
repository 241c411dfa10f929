package ui

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/election"
)

type electionsView struct {
	List        list[lockRow]
	Led, Others int
}

func buildElections(u *UI, q request, s *snapshot) (built, error) {
	rows, reports := u.lockRows(s, true)
	v := electionsView{List: listOf(q.query, rows, lockSorts, lockRow.matches)}
	for _, r := range rows {
		v.Others += r.Waiting
		if len(r.Report.Holders) > 0 {
			v.Led++
		}
	}
	return built{"Elections", v, reports}, nil
}

type electionView struct {
	Path       string
	Link       link
	Problems   []finding
	Leader     *election.Candidate
	Candidates []election.Candidate
	Terms      []termRow
	Timeline   []termBar
	Until      time.Time // the right end of the timeline
	Watched    time.Time
	Done       string
	HideData   bool
	Commands   []string
}

type termRow struct {
	term
	Gap   time.Duration // without a leader before it
	Leads bool
}

// termBar is a term, or a time without a leader, on the timeline. X and Width are percent.
type termBar struct {
	X, Width string
	Class    string // b-busy, b-rest, or b-missed without a leader
	Leader   string // "" without one
	From     time.Time
	Until    time.Time // zero while it leads
}

// timelineOf draws terms from the first to the end of the minute: so the drawing changes once a
// minute.
func timelineOf(terms []term, now time.Time) (bars []termBar, until time.Time) {
	if len(terms) == 0 {
		return nil, now
	}
	from := terms[0].From
	until = now.Truncate(time.Minute).Add(time.Minute)
	span := max(time.Minute, until.Sub(from)).Seconds()
	add := func(class, leader string, begin, end time.Time) {
		drawnTo := end
		if end.IsZero() {
			drawnTo = until
		}
		width := max(0, drawnTo.Sub(begin).Seconds())
		bars = append(bars, termBar{percent(begin.Sub(from).Seconds() / span), percent(max(0.002, width/span)), class,
			leader, begin, end})
	}
	for i, t := range terms {
		if i > 0 && terms[i-1].Until.Before(t.From) && !terms[i-1].Until.IsZero() {
			add("b-missed", "", terms[i-1].Until, t.From)
		}
		class := "b-rest"
		if t.Until.IsZero() {
			class = "b-busy"
		}
		add(class, t.Leader, t.From, t.Until)
	}
	if last := terms[len(terms)-1]; !last.Until.IsZero() {
		add("b-missed", "", last.Until, time.Time{})
	}
	return bars, until
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" }

func buildElection(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	if err := u.checkPath(path); err != nil {
		return built{}, err
	}
	all, err := read(q.ctx, u.hub, s, "election "+path, func(ctx context.Context) ([]election.Candidate, error) {
		all, err := election.New(u.client, path).Candidates(ctx)
		if u.hideData {
			all = hideCandidates(all)
		}
		return all, err
	})
	u.hub.mu.Lock()
	terms, watched := slices.Clone(u.hub.memory.terms[path]), u.hub.memory.since
	u.hub.mu.Unlock()
	switch {
	case err != nil && s.failed == nil:
		return built{}, err
	case len(all) == 0 && len(terms) == 0:
		return built{}, missing("election", path)
	}
	v := electionView{Path: path, Link: linkTo("", path, u.root), Problems: s.problemsAt[path], Candidates: all,
		Watched: watched, Done: doneText(q.query), HideData: u.hideData}
	if r := s.locksAt[path]; len(all) > 0 && len(r.Holders) > 0 {
		v.Leader = &all[0]
	}
	for i, t := range terms {
		row := termRow{term: t, Leads: t.Until.IsZero()}
		if i > 0 && !terms[i-1].Until.IsZero() {
			row.Gap = t.From.Sub(terms[i-1].Until)
		}
		v.Terms = append(v.Terms, row)
	}
	v.Timeline, v.Until = timelineOf(terms, s.at)
	word := shellWord(path)
	v.Commands = []string{"lockstep elections " + word, "lockstep elections transfer " + word}
	return built{path, v, all}, nil
}
