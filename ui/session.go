package ui

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

type sessionView struct {
	ID    string
	Rows  []sessionRow
	Owner string
	Host  string
}

type sessionRow struct {
	Link link
	What string
	Node string
	At   time.Time
}

func (u *UI) sessionRows(s *snapshot, id framework.SessionID) (rows []sessionRow, name, host string) {
	for _, r := range s.Locks {
		page := "lock"
		if r.Kind == locks.ElectionLock {
			page = "election"
		}
		add := func(what string, entries []locks.Entry) {
			for _, e := range entries {
				if e.Session == id {
					rows = append(rows, sessionRow{linkTo(page, r.Path, u.root), what, e.Node, e.Since})
					name, host = cmp.Or(name, e.Owner), cmp.Or(host, e.Host)
				}
			}
		}
		add("holds", r.Holders)
		add("waits for", r.Waiters)
	}
	for _, q := range s.Queues {
		if q.Held.Session == id {
			rows = append(rows, sessionRow{linkTo("queue", q.Path, u.root), "has an item of", q.Held.Node,
				q.Held.Since})
			name, host = cmp.Or(name, q.Held.Owner), cmp.Or(host, q.Held.Host)
		}
	}
	return rows, name, host
}

func buildSession(u *UI, q request, s *snapshot) (built, error) {
	var id framework.SessionID
	if err := id.UnmarshalText([]byte(q.query.Get("id"))); err != nil {
		return built{}, &pageError{404, "That is no session", "A session is a number such as 0x10000c2f6d20031."}
	}
	v := sessionView{ID: id.String()}
	v.Rows, v.Owner, v.Host = u.sessionRows(s, id)
	return built{"Session " + id.String(), v, v.Rows}, nil
}

// sessionsIn are the sessions of all that a scan has seen.
func sessionsIn(s *snapshot) map[framework.SessionID]bool {
	all := map[framework.SessionID]bool{}
	for _, l := range s.Locks {
		for _, entries := range [][]locks.Entry{l.Holders, l.Waiters, l.Others} {
			for _, e := range entries {
				all[e.Session] = true
			}
		}
	}
	for _, q := range s.Queues {
		all[q.Held.Session] = true
	}
	for _, j := range s.Jobs {
		for _, m := range j.Members {
			all[m.Session] = true
		}
	}
	for _, r := range s.Runs {
		if r.Taken != nil {
			all[r.Taken.Session] = true
		}
	}
	return all
}

// sessionsRow is a session in the list of those that hold something or wait.
type sessionsRow struct {
	Session framework.SessionID `json:"session"`
	Owner   string              `json:"owner,omitempty"`
	Host    string              `json:"host,omitempty"`
	Holds   int                 `json:"holds"` // locks and terms
	Waits   int                 `json:"waits"`
	Items   int                 `json:"items"`          // queues whose longest held item it has
	Since   time.Time           `json:"since,omitzero"` // of the oldest of all these
}

// sessionsOf groups what a scan has seen by session.
func sessionsOf(s *snapshot) (rows []sessionsRow) {
	at := map[framework.SessionID]int{}
	add := func(id framework.SessionID, owner, host string, since time.Time) *sessionsRow {
		i, known := at[id]
		if !known {
			i = len(rows)
			at[id], rows = i, append(rows, sessionsRow{Session: id})
		}
		r := &rows[i]
		r.Owner, r.Host = cmp.Or(r.Owner, owner), cmp.Or(r.Host, host)
		if r.Since.IsZero() || !since.IsZero() && since.Before(r.Since) {
			r.Since = since
		}
		return r
	}
	for _, l := range s.Locks {
		for _, e := range l.Holders {
			if e.Session != 0 {
				add(e.Session, e.Owner, e.Host, e.Since).Holds++
			}
		}
		for _, e := range l.Waiters {
			if e.Session != 0 {
				add(e.Session, e.Owner, e.Host, e.Since).Waits++
			}
		}
	}
	for _, q := range s.Queues {
		if id := q.Held.Session; id != 0 {
			add(id, q.Held.Owner, q.Held.Host, q.Held.Since).Items++
		}
	}
	slices.SortStableFunc(rows, func(a, b sessionsRow) int {
		return cmp.Or((b.Holds+b.Items)-(a.Holds+a.Items), b.Waits-a.Waits, cmp.Compare(a.Session, b.Session))
	})
	return rows
}

type sessionsView struct{ List list[sessionsRow] }

func buildSessions(_ *UI, q request, s *snapshot) (built, error) {
	rows := sessionsOf(s)
	v := sessionsView{listOf(q.query, rows, map[string]func(a, b sessionsRow) int{
		"holds": func(a, b sessionsRow) int { return b.Holds - a.Holds },
		"waits": func(a, b sessionsRow) int { return b.Waits - a.Waits },
		"since": func(a, b sessionsRow) int { return compareSince(a.Since, b.Since) },
	}, func(r sessionsRow, wanted string) bool {
		return containsAny(wanted, r.Session.String(), r.Owner, r.Host)
	})}
	return built{"Sessions", v, append([]sessionsRow{}, rows...)}, nil
}
