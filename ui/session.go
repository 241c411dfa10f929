package ui

import (
	"cmp"
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
		if framework.SessionID(q.Held.Session) == id {
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
