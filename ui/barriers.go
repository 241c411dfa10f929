package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
)

// barrierRow is a barrier, a gate or a latch in a list.
type barrierRow struct {
	barrier.Report
	Link  link
	Mark  severity
	State string
	Who   []barrier.Member // the first ones; callers of a latch have a name only
	More  int              // that are left out
	Since time.Time        // when the first of them came
}

// maxWho is how many members of a barrier a list names.
const maxWho = 20

func (u *UI) barrierRowOf(r barrier.Report) barrierRow {
	row := barrierRow{Report: r, Link: linkTo("", r.Path, u.root), Mark: off, State: "nobody waits"}
	row.Who = slices.Concat(r.Inside, r.Waiting)
	for _, name := range r.Counted {
		row.Who = append(row.Who, barrier.Member{Owner: name})
	}
	switch {
	case r.Open:
		row.Mark, row.State = good, "open"
	case r.Kind == barrier.KindGate:
		row.Mark, row.State, row.Who = wait, "raised", []barrier.Member{r.RaisedBy}
	case len(r.Inside) > 0:
		row.Mark, row.State = busy, fmt.Sprintf("%s inside", count(len(r.Inside)))
		if r.Left > 0 {
			row.State += fmt.Sprintf(", %s left", count(r.Left))
		}
	case len(row.Who) > 0:
		row.Mark, row.State = wait, fmt.Sprintf("%s of %s are missing", count(r.Missing), count(r.Needed))
		if r.Missing == 1 {
			row.State = fmt.Sprintf("1 of %s is missing", count(r.Needed))
		}
	}
	for _, m := range row.Who {
		if row.Since.IsZero() || !m.Since.IsZero() && m.Since.Before(row.Since) {
			row.Since = m.Since
		}
	}
	row.More = max(0, len(row.Who)-maxWho)
	row.Who = row.Who[:len(row.Who)-row.More]
	return row
}

func (r barrierRow) matches(wanted string) bool {
	texts := []string{r.Path, string(r.Kind), r.State}
	for _, members := range [][]barrier.Member{r.Inside, r.Waiting, {r.RaisedBy}} {
		for _, m := range members {
			texts = append(texts, m.Owner, m.Host, m.Session.String())
		}
	}
	return containsAny(wanted, append(texts, r.Counted...)...)
}

type barriersView struct {
	List    list[barrierRow]
	Waiting int // barriers, gates and latches
}

func buildBarriers(u *UI, q request, s *snapshot) (built, error) {
	var v barriersView
	var rows []barrierRow
	for _, r := range s.barriers {
		row := u.barrierRowOf(r)
		if rows = append(rows, row); row.Mark == wait {
			v.Waiting++
		}
	}
	slices.SortStableFunc(rows, func(a, b barrierRow) int { // where somebody waits, for the longest time
		order := []severity{wait, busy}
		return cmp.Or(slices.Index(order, a.Mark)&3-slices.Index(order, b.Mark)&3, compareSince(a.Since, b.Since))
	})
	v.List = listOf(q.query, rows, nil, barrierRow.matches)
	return built{"Barriers, gates and latches", v, listJSON(s.barriers)}, nil
}
