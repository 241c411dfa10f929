package ui

import (
	"context"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/locks"
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
	return built{"Elections", v, laterJSON(func(ctx context.Context) (any, error) {
		return u.readElections(ctx, s, reports)
	})}, nil
}

// readElections reads the candidates of elections, once for each snapshot. It leaves out what
// cannot be read, as the list's page does not show it either.
func (u *UI) readElections(ctx context.Context, s *snapshot, of []locks.Report) ([]sharedreport.Election, error) {
	return read(ctx, u.hub, s, "elections", func(ctx context.Context) ([]sharedreport.Election, error) {
		elections := []sharedreport.Election{}
		for _, r := range of {
			candidates, err := u.readCandidates(ctx, r.Path)
			switch {
			case err == nil:
				elections = append(elections, sharedreport.NewElection(r.Path, candidates))
			case survey.EndedBy(ctx, err) != nil:
				return nil, err
			}
		}
		return elections, nil
	})
}

func (u *UI) readCandidates(ctx context.Context, path string) ([]election.Candidate, error) {
	all, err := election.New(u.client, path).Candidates(ctx)
	if u.hideData {
		all = hideCandidates(all)
	}
	return all, err
}

type electionView struct {
	Path       string
	Link       link
	Problems   []finding
	Leader     *election.Candidate
	Candidates []election.Candidate
	Terms      []termRow
	Timeline   timeline
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

// barsOf are the terms, and the times without a leader between them.
func barsOf(terms []term) (bars []bar) {
	for i, t := range terms {
		if i > 0 && terms[i-1].Until.Before(t.From) && !terms[i-1].Until.IsZero() {
			bars = append(bars, bar{Class: "b-missed", Text: "nobody leads", From: terms[i-1].Until, Until: t.From})
		}
		class := "b-rest"
		if t.Until.IsZero() {
			class = "b-busy"
		}
		bars = append(bars, bar{Class: class, Text: t.Leader + " leads", From: t.From, Until: t.Until})
	}
	if n := len(terms); n > 0 && !terms[n-1].Until.IsZero() {
		bars = append(bars, bar{Class: "b-missed", Text: "nobody leads", From: terms[n-1].Until})
	}
	return bars
}

func buildElection(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	if err := u.checkPath(path); err != nil {
		return built{}, err
	}
	all, err := read(q.ctx, u.hub, s, "election "+path, func(ctx context.Context) ([]election.Candidate, error) {
		return u.readCandidates(ctx, path)
	})
	u.hub.mu.Lock()
	terms, watched := slices.Clone(u.hub.memory.terms[path]), u.hub.memory.since
	u.hub.mu.Unlock()
	switch {
	case err != nil && s.failed == nil:
		return built{}, err
	case len(all) == 0 && len(terms) == 0:
		return built{}, u.missingLock(s, "election", path)
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
	v.Timeline = timelineOf(barsOf(terms), s.at, q.query)
	word := shellWord(path)
	v.Commands = []string{"lockstep elections " + word, "lockstep elections transfer " + word}
	return built{path, v, sharedreport.NewElection(path, all)}, nil
}
